package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// replayTimeout bounds how long a replay waits without progress.
	replayTimeout = 30 * time.Second
	// heartbeat is how often an idle server sends a heartbeat; two missed heartbeats end a delivery.
	heartbeat = time.Second
	// inactiveThreshold is the time after which the server deletes the consumer of a reader that has
	// disappeared.
	inactiveThreshold = time.Minute
	// pullBytes bounds the memory that a reader uses for messages. It must have room for two messages.
	pullBytes = 8 << 20
	// headTimeout limits how long a replicated log may end before a sequence that was already read: a
	// server that has just become the leader may still be applying commits.
	headTimeout = 10 * time.Second
)

// Replay calls fn with every commit after a sequence up to the current head of the log, and returns
// the last sequence. If fn returns an error, Replay stops and returns it. ErrGap is an alarm: a
// stored commit is missing. A broken connection is retried for up to 30 seconds without progress.
func (l *Log) Replay(ctx context.Context, after uint64, fn func(Record) error) (uint64, error) {
	head, err := l.Head(ctx)
	if err != nil {
		return after, fmt.Errorf("replaying the log after %d: %w", after, err)
	}
	r := &pass{cursor: after, until: head, fn: fn}
	if err := l.read(ctx, r, replayTimeout); err != nil {
		return r.cursor, fmt.Errorf("replaying the log after %d: at %d: %w", after, r.cursor, err)
	}
	return r.cursor, nil
}

// Follow calls fn with every commit after a sequence, and continues with new commits until ctx
// ends, fn fails, the log is closed, or the log was damaged (ErrGap, ErrMissing). After a broken
// connection it resumes without losing or repeating a commit. Its error is never nil.
func (l *Log) Follow(ctx context.Context, after uint64, fn func(Record) error) error {
	r := &pass{cursor: after, until: math.MaxUint64, fn: fn}
	err := l.read(ctx, r, 0)
	return fmt.Errorf("following the log: at %d: %w", r.cursor, err)
}

type pass struct {
	// cursor is the sequence of the last commit that was read; start is the value of cursor when the
	// delivery began.
	cursor, until, start uint64
	fn                   func(Record) error
}

// read delivers commits, and resumes at the cursor when a delivery breaks. patience limits the time
// without progress; 0 means no limit.
func (l *Log) read(ctx context.Context, r *pass, patience time.Duration) error {
	b := newBackOff(patience)
	return backoff.RetryNotify(func() error {
		before := r.cursor
		err := l.deliver(ctx, r)
		if r.cursor > before {
			b.Reset()
		}
		if l.nc.IsClosed() || errors.Is(err, ErrGap) || errors.Is(err, ErrMissing) || patience > 0 && errors.Is(err, ErrPermission) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, wait time.Duration) {
		l.logger.Warn("event log: delivery stopped, restarting it", "after", r.cursor, "in", wait, "error", err)
	})
}

// deliver reads with one consumer until the consumer breaks. It checks the sequence of every
// message, so it notices a message that the server or the client loses.
func (l *Log) deliver(ctx context.Context, r *pass) error {
	state, err := waitForHead(ctx, l.state, r.cursor, l.headWait())
	if err != nil {
		return err
	}
	if r.cursor >= r.until {
		return nil
	}
	if last := min(state.LastSeq, r.until); last > r.cursor {
		// The server skips a commit that it cannot read. Normally the next commit reveals the gap. No
		// commit follows the last one, so the last one is read here.
		if _, err := l.At(ctx, last); err != nil {
			return err
		}
	}
	return l.deliverFrom(ctx, r)
}

func (l *Log) headWait() time.Duration {
	if l.stream.CachedInfo().Config.Replicas > 1 {
		return headTimeout
	}
	return 0
}

// waitForHead waits until the log ends at seq or later. It fails with ErrGap if, after the time
// patience, the log still ends before seq.
func waitForHead(ctx context.Context, ask func(context.Context) (jetstream.StreamState, error), seq uint64, patience time.Duration) (jetstream.StreamState, error) {
	deadline := time.Now().Add(patience)
	for b := newBackOff(0); ; {
		state, err := ask(ctx)
		if err != nil || state.LastSeq >= seq {
			return state, err
		}
		if !time.Now().Before(deadline) {
			return state, fmt.Errorf("%w: the log ends at %d, but commit %d was read earlier; restore it from a backup or a mirror", ErrGap, state.LastSeq, seq)
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(b.NextBackOff()):
		}
	}
}

func (l *Log) deliverFrom(ctx context.Context, r *pass) error {
	var (
		mu    sync.Mutex // held while fn runs, so that fn does not run after this function has returned
		ended bool
		done  = make(chan error, 1)
	)
	r.start = r.cursor
	end := func(err error) {
		select {
		case done <- err:
		default: // only the first error counts
		}
	}
	stop, err := l.consume(ctx, r.cursor+1, func(m jetstream.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		err := r.handle(m)
		if ended = err != nil || r.cursor >= r.until; ended {
			end(err)
		}
	}, func(err error) { end(translateError(l.spec.name, err)) })
	if err != nil {
		return err
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	mu.Lock()
	ended = true
	mu.Unlock()
	stop()
	return err
}

func (s *pass) handle(m jetstream.Msg) error {
	r, err := fromDelivery(m)
	if err != nil {
		return backoff.Permanent(err)
	}
	if err := s.checkSequence(r); err != nil {
		return err
	}
	if err := s.fn(r); err != nil {
		return backoff.Permanent(err)
	}
	s.cursor = r.Seq
	return nil
}

func (s *pass) checkSequence(r Record) error {
	switch {
	case r.Seq == s.cursor+1:
		return nil
	case s.cursor == s.start:
		return fmt.Errorf("%w: commit %d is followed by %d; restore the log from a backup or a mirror", ErrGap, s.start, r.Seq)
	default:
		// The server or the client lost the message, or the commit is missing. The next delivery shows
		// which.
		return fmt.Errorf("%w: the delivery skipped from %d to %d", ErrUnavailable, s.cursor, r.Seq)
	}
}

// consume creates a consumer that starts at a sequence, and returns a function that stops it.
func (l *Log) consume(ctx context.Context, start uint64, take func(jetstream.Msg), failed func(error)) (stop func(), err error) {
	cctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// The stream is always read without a filter, because a filter is slow on a stream of many subjects.
	var consumer jetstream.Consumer
	err = l.denials.run(cctx, "$JS.API.CONSUMER.CREATE."+l.spec.name, func(ctx context.Context) error {
		consumer, err = l.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       start,
			AckPolicy:         jetstream.AckNonePolicy,
			MemoryStorage:     true,
			Replicas:          1,
			InactiveThreshold: inactiveThreshold,
		})
		return err
	})
	if err != nil {
		return nil, translateError(l.spec.name, err)
	}
	forget := func() {
		// Only an embedded server is asked to delete the consumer. An external server would require
		// a permission for it, and every server deletes an inactive consumer.
		if l.host == nil {
			return
		}
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = l.stream.DeleteConsumer(dctx, consumer.CachedInfo().Name)
	}
	consuming, err := consumer.Consume(take,
		jetstream.PullMaxBytes(max(pullBytes, int(2*l.nc.MaxPayload()))),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { failed(err) }),
	)
	if err != nil {
		forget()
		return nil, translateError(l.spec.name, err)
	}
	return func() { consuming.Stop(); forget() }, nil
}
