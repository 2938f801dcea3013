package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamName is the name of the log's stream. A NATS account can contain only one log.
const StreamName = "SCUTE"

// requestTimeout bounds one request to the server if the caller's context has no nearer deadline.
const requestTimeout = 5 * time.Second

// Log is an open event log, created by Connect or by embedded.Open. It is safe for concurrent use.
type Log struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	id      string
	logger  *slog.Logger
	spec    streamSpec
	denials denials

	stream  jetstream.Stream
	created time.Time

	host Host // nil for an external log
}

// Head asks the leader for the sequence of the last commit in the log; 0 means an empty log. It
// fails with ErrMissing if the stream was deleted or created again, and with ErrGap if a stored
// commit is missing.
func (l *Log) Head(ctx context.Context) (uint64, error) {
	state, err := l.state(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the head of the log: %w", err)
	}
	return state.LastSeq, nil
}

// Stats contains the size of the log and its limits.
type Stats struct {
	// Commits is the number of commits, which equals the sequence of the last one.
	Commits    uint64
	Aggregates uint64
	// Bytes is the size of the log. When it reaches MaxBytes, the log refuses new commits.
	Bytes    uint64
	MaxBytes uint64
}

// Stats requests the size of the log from its leader.
func (l *Log) Stats(ctx context.Context) (Stats, error) {
	state, err := l.state(ctx)
	if err != nil {
		return Stats{}, fmt.Errorf("reading the size of the log: %w", err)
	}
	limit := l.stream.CachedInfo().Config.MaxBytes
	return Stats{Commits: state.LastSeq, Aggregates: state.NumSubjects, Bytes: state.Bytes, MaxBytes: uint64(max(limit, 0))}, nil
}

// Close closes the log. If the log is embedded, Close stops the server and releases the folder.
// Reads in progress end with an error. Acknowledged commits are on disk already.
func (l *Log) Close() error {
	l.nc.Close()
	if l.host == nil {
		return nil
	}
	return l.host.Close()
}

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
	l := &Log{nc: nc, js: js, logger: logger, spec: want}
	l.denials.listen(nc)
	err = l.denials.run(ctx, "$JS.API.STREAM", func(ctx context.Context) (err error) {
		l.stream, err = want.ensure(ctx, js)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the event log, stream %s: %w", want.name, err)
	}
	info := l.stream.CachedInfo()
	l.id, l.created = identity(info), info.Created
	return l, nil
}

// state requests the stream's state from the leader. It fails with ErrMissing if the stream was
// created again, and with ErrGap if a commit is missing.
func (l *Log) state(ctx context.Context) (state jetstream.StreamState, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = l.denials.run(ctx, "$JS.API.STREAM.INFO."+l.spec.name, func(ctx context.Context) error {
		info, err := l.info(ctx)
		if err != nil {
			return err
		}
		if !info.Created.Equal(l.created) {
			return fmt.Errorf("%w: stream %s was deleted, and one with the same name was created at %s; stop, and restore the log from a backup or a mirror",
				ErrMissing, l.spec.name, info.Created.Format(time.RFC3339))
		}
		state = info.State
		if l.spec.allowDamaged {
			return nil
		}
		return checkComplete(l.spec.name, state)
	})
	return state, err
}

// checkComplete fails if a sequence is missing. The log never deletes a commit, so a missing commit
// was lost.
func checkComplete(name string, s jetstream.StreamState) error {
	if s.Lost != nil && len(s.Lost.Msgs) > 0 {
		return fmt.Errorf("%w: stream %s lost %d commits, the first of them %d, to damage on its disk; restore it from a backup or a mirror",
			ErrGap, name, len(s.Lost.Msgs), s.Lost.Msgs[0])
	}
	if s.LastSeq != s.Msgs || (s.Msgs > 0 && s.FirstSeq != 1) {
		return fmt.Errorf("%w: stream %s holds %d commits between sequences %d and %d, but should hold 1 to %d; restore it from a backup or a mirror",
			ErrGap, name, s.Msgs, s.FirstSeq, s.LastSeq, s.LastSeq)
	}
	return nil
}

func translateError(stream string, err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: stream %s; if it was deleted, restore it from a backup or a mirror", ErrMissing, stream)
	}
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// minPayload is the smallest permitted limit of a server for the size of a message, in bytes. The
// largest commits of scute fit into it.
const minPayload = 1 << 20

// Health returns nil if the log accepts commits. It fails with
//
//	ErrFrozen    a write to the disk of an embedded log failed; once CheckWritable succeeds, open it again
//	ErrConfig    the server or the stream is no longer configured as the log requires
//	ErrUnavailable, ErrMissing, ErrGap
func (l *Log) Health(ctx context.Context) error {
	if err := l.checkFrozen(); err != nil {
		return err
	}
	err := l.checkIntact()
	if err == nil {
		_, err = l.state(ctx)
	}
	if err == nil {
		err = checkPayload(l.nc.MaxPayload())
	}
	if err == nil {
		err = l.spec.check(l.stream.CachedInfo().Config)
	}
	if err != nil {
		return fmt.Errorf("checking the log: %w", err)
	}
	return nil
}

// Warnings returns what may weaken the log's durability, and which settings this process cannot check.
func (l *Log) Warnings() []string {
	if l.host != nil || !l.spec.writer {
		return nil
	}
	if n := l.stream.CachedInfo().Config.Replicas; n < 2 {
		return []string{"one NATS server stores the log, and scuted cannot check whether it syncs each commit to its disk: " +
			"set sync_interval: always in its configuration, or give the stream three replicas"}
	}
	return []string{"scuted cannot check whether the NATS servers sync each commit to their disks: " +
		"without sync_interval: always, a power loss of all of them at once can lose the last commits"}
}

// checkPayload refuses a server with a limit below minPayload, because it could refuse a commit
// that other servers accept.
func checkPayload(limit int64) error {
	if limit < minPayload {
		return fmt.Errorf("%w: max_payload of the NATS server is %d bytes, must be %d or more", ErrConfig, limit, minPayload)
	}
	return nil
}
