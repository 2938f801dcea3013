package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DefaultStream is the stream's name when none is given.
const DefaultStream = "SCUTE"

// requestTimeout bounds one request to the server when the caller's context has no nearer deadline.
const requestTimeout = 5 * time.Second

// Log is an open event log, made by Connect or by embedded.Open. It is safe for concurrent use.
type Log struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	id     string
	logger *slog.Logger
	spec   streamSpec // of the first epoch
	// denials ends requests that the server denies.
	denials denials

	// epochs are those that are known; moving is held while one is added.
	epochs atomic.Pointer[[]epoch]
	moving sync.Mutex
	reach  func(step string)
	// settled is settledAfter.
	settled time.Duration

	// host is what holds an embedded log; nil for an external one.
	host Host
}

// Head is the sequence of the last commit in the log, as its leader knows it; 0 for an empty log. It fails with
// ErrMissing when the stream was deleted or created again, with ErrGap when a stored commit is missing.
func (l *Log) Head(ctx context.Context) (uint64, error) {
	state, err := l.state(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the head of the log: %w", err)
	}
	return state.LastSeq, nil
}

// Stats is what the log holds and may hold.
type Stats struct {
	// Commits is how many there are, in all epochs, those that were dropped included: it is the sequence of the last one.
	Commits uint64
	// Aggregates are those with a commit in the open epoch, and Bytes is its size.
	Aggregates uint64
	Bytes      uint64
	// ClosedBytes is the size of the closed epochs.
	ClosedBytes uint64
	// MaxBytes is the size of the open epoch at which the log refuses new commits.
	MaxBytes uint64
	// Epoch is the number of the open epoch.
	Epoch int
	// Floor is what was dropped; nil if nothing was.
	Floor *Floor
}

// Stats asks the log's leader how full the log is.
func (l *Log) Stats(ctx context.Context) (Stats, error) {
	state, err := l.state(ctx)
	if err != nil {
		return Stats{}, fmt.Errorf("reading the size of the log: %w", err)
	}
	list := l.all()
	config := list[len(list)-1].stream.CachedInfo().Config
	s := Stats{Floor: list[0].spec.kept, Epoch: list[len(list)-1].spec.number(), Commits: state.LastSeq, Aggregates: state.NumSubjects, Bytes: state.Bytes, MaxBytes: uint64(max(config.MaxBytes, 0))}
	if isClosing(config) {
		// What is appended now is stored in the next one.
		c, err := closingOf(config)
		if err != nil {
			return Stats{}, fmt.Errorf("reading the size of the log: %w", err)
		}
		s.Bytes, s.MaxBytes, s.ClosedBytes = 0, uint64(max(c.MaxBytes, 0)), state.Bytes
	}
	for _, e := range list[:len(list)-1] {
		s.ClosedBytes += e.stream.CachedInfo().State.Bytes
	}
	return s, nil
}

// Close ends every use of the log and, if it is embedded, stops the server and frees the folder. Reads in progress end
// with an error. What was acknowledged is on disk already.
func (l *Log) Close() error {
	l.nc.Close()
	if l.host == nil {
		return nil
	}
	return l.host.Close()
}

// open binds to the stream, the same way for an embedded and an external log.
func open(ctx context.Context, nc *nats.Conn, want streamSpec, logger *slog.Logger) (*Log, error) {
	if want.writer {
		if err := checkPayload(nc.MaxPayload()); err != nil {
			return nil, fmt.Errorf("opening the event log: %w", err)
		}
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening the event log: %w", err)
	}
	l := &Log{nc: nc, js: js, logger: logger, spec: want, settled: settledAfter}
	l.denials.listen(nc)
	if err := l.start(ctx); err != nil {
		return nil, fmt.Errorf("opening the event log, stream %s: %w", want.name, err)
	}
	return l, nil
}

// start finds the epochs of the log. A writer makes the first one, and ends what another one left undone.
func (l *Log) start(ctx context.Context) error {
	begin, err := l.beginning(ctx)
	if err != nil {
		return err
	}
	l.id = identity(begin.stream.CachedInfo())
	l.epochs.Store(&[]epoch{begin})
	if err := l.continued(ctx); err != nil || !l.spec.writer {
		return err
	}
	if err := l.finish(ctx); err != nil {
		return err
	}
	if err := l.resize(ctx); err != nil {
		return err
	}
	return l.endDrop(ctx)
}

// continued finds the epochs that follow the beginning. One that must be there and is not may have been dropped, too, since the beginning was
// found.
func (l *Log) continued(ctx context.Context) error {
	for {
		if err := l.catchUp(ctx); err != nil {
			return err
		}
		seen := l.epochs.Load()
		begin := (*seen)[0]
		if begin.spec.kept == nil || len(*seen) > 1 || l.spec.examine {
			return nil
		}
		found, err := l.reopen(ctx, seen)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: stream %s, which follows the epochs that were dropped; restore the log from its archive or a backup", ErrMissing, begin.spec.next(0).stream())
		}
	}
}

// state asks the leader of the open epoch's stream for its state, and checks that the stream is still the one that was opened and
// whole.
func (l *Log) state(ctx context.Context) (jetstream.StreamState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		seen := l.epochs.Load()
		e := (*seen)[len(*seen)-1]
		state, err := l.stateOf(ctx, e)
		if errors.Is(err, ErrMissing) {
			found, unknown := l.reopen(ctx, seen)
			if found {
				unknown = l.catchUp(ctx)
			}
			if unknown != nil {
				return jetstream.StreamState{}, unknown
			}
			if found && l.current().spec.kept == nil {
				continue
			}
		}
		if err != nil {
			return state, err
		}
		if err := l.catchUp(ctx); err != nil {
			return jetstream.StreamState{}, err
		}
		if l.current().spec.number() == e.spec.number() {
			return state, nil
		}
	}
}

// stateOf is the same of one epoch.
func (l *Log) stateOf(ctx context.Context, e epoch) (state jetstream.StreamState, err error) {
	err = l.denials.during(ctx, "$JS.API.STREAM.INFO."+e.spec.stream(), func(ctx context.Context) error {
		state, err = e.state(ctx)
		return err
	})
	return state, err
}

// state is the same, and waits for an answer that does not come.
func (e epoch) state(ctx context.Context) (jetstream.StreamState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := e.info(ctx)
	if err != nil {
		return jetstream.StreamState{}, err
	}
	if !info.Created.Equal(e.created) {
		return jetstream.StreamState{}, fmt.Errorf("%w: stream %s was deleted, and one of the same name was made at %s; stop, and restore the log from a backup or a mirror",
			ErrMissing, e.spec.stream(), info.Created.Format(time.RFC3339))
	}
	if e.spec.examine {
		return info.State, nil
	}
	return info.State, whole(e.spec, info.State)
}

// whole checks that every sequence of an epoch is there: the log deletes nothing, so what is missing was lost.
func whole(spec streamSpec, s jetstream.StreamState) error {
	if spec.kept != nil {
		return spec.kept.whole(s)
	}
	name, first := spec.stream(), spec.start()
	if s.Lost != nil && len(s.Lost.Msgs) > 0 {
		return fmt.Errorf("%w: stream %s lost %d commits, the first of them %d, to damage on its disk; restore it from a backup or a mirror",
			ErrGap, name, len(s.Lost.Msgs), s.Lost.Msgs[0])
	}
	if s.LastSeq+1 != first+s.Msgs || (s.Msgs > 0 && s.FirstSeq != first) {
		return fmt.Errorf("%w: stream %s holds %d commits between sequences %d and %d, but should hold %d to %d; restore it from a backup or a mirror",
			ErrGap, name, s.Msgs, s.FirstSeq, s.LastSeq, first, s.LastSeq)
	}
	return nil
}

// explain turns an error of the client about a stream into one of this package's.
func explain(stream string, err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: stream %s; if it was deleted, restore it from a backup or a mirror", ErrMissing, stream)
	}
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func discardIfNil(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
