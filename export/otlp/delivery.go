package otlp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/eventlog"
	"scute.dev/export/consume"
	"scute.dev/export/tracing"
	"scute.dev/internal/sleep"
)

const (
	maxBatchSpans = 512
	// maxBatchBytes is far below the 4 MiB at which a collector rejects a request, however often it is
	// retried
	maxBatchBytes   = 1 << 20
	initialInterval = time.Second
	maxInterval     = time.Minute
)

// Delivery sends the spans of a log. It sends a span when the span has ended.
type Delivery struct {
	Log   consume.Log
	Store consume.Store
	// Send sends spans, as Sender.Send does.
	Send func(ctx context.Context, spans []tracing.Span) (refused int, err error)
	// Alarm is called with the reason when spans cannot be sent. It is called once for each reason.
	Alarm func(err error)
	// OnRejected is called for spans that the collector rejected.
	OnRejected func(spans int, err error)
	// InitialInterval is the first wait after an error; 0 means 1 s. SaveInterval is the longest time
	// until ended spans are sent and the position is saved; 0 means 5 s. After a crash, the spans
	// since the last save are sent again.
	InitialInterval, SaveInterval time.Duration
	Logger                        *slog.Logger

	mu       sync.Mutex
	state    State
	reported string // the last error that was passed to Alarm
}

// State is the state of a delivery.
type State struct {
	// Sequence is the last commit whose ended spans were all sent.
	Sequence uint64
	// Sent and Rejected are the numbers of spans since the process started.
	Sent, Rejected uint64
}

// State returns the current state.
func (d *Delivery) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Run sends spans until ctx ends. After an error it resumes at the saved position, so it sends the
// spans after that position again.
func (d *Delivery) Run(ctx context.Context) {
	waits := d.newBackOff()
	for ctx.Err() == nil {
		err := d.run(ctx, waits)
		if ctx.Err() != nil {
			return
		}
		d.reportError(err)
		_ = sleep.For(ctx, waits.NextBackOff()) // fails when ctx has ended
	}
}

func (d *Delivery) newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(cmp.Or(d.InitialInterval, initialInterval)), backoff.WithMaxInterval(maxInterval), backoff.WithMaxElapsedTime(0))
}

func (d *Delivery) run(ctx context.Context, waits *backoff.ExponentialBackOff) error {
	progress, err := consume.Resume(ctx, d.Log, d.Store, d.Logger)
	if err != nil {
		return err
	}
	p := progress.Position()
	d.recordPosition(p.Sequence)
	q := &queue{Delivery: d, progress: progress, waits: waits}
	sending, cancel := context.WithCancel(ctx)
	stop := progress.SaveEvery(ctx, d.SaveInterval, func() error { return q.flush(sending) })
	fold, since := tracing.New(p.LogID), min(p.Since, p.Sequence)
	err = d.Log.Follow(ctx, min(since, p.ReadAfter()), func(r eventlog.Record) error {
		if r.Seq == p.Sequence {
			if err := p.Check(r); err != nil {
				return err
			}
		}
		if r.Seq <= since {
			return nil
		}
		spans, err := fold.Apply(r)
		if r.Seq <= p.Sequence { // already sent
			return nil
		}
		if err != nil {
			d.Logger.Warn("a commit of the event log cannot be read, and is not part of any span", "sequence", r.Seq, "subject", r.Subject(), "error", err)
		}
		after := consume.PositionAfter(p.LogID, r)
		after.Since = fold.Since(r.Seq)
		return q.add(ctx, spans, after)
	})
	cancel()
	err = errors.Join(err, stop())
	if errors.Is(err, consume.ErrRolledBack) {
		// The spans of lost commits remain at the collector. The commits that replaced them have
		// spans with other IDs.
		return errors.Join(err, progress.Reset(ctx))
	}
	return err
}

// queue contains the spans that were not sent yet. It also contains the position to save after they
// were sent.
type queue struct {
	*Delivery
	progress *consume.Progress
	waits    *backoff.ExponentialBackOff

	sending sync.Mutex
	spans   []tracing.Span
	after   consume.Position
}

// add adds the spans that ended with a commit. When the queue has enough spans to fill a request,
// it sends all of them.
func (q *queue) add(ctx context.Context, spans []tracing.Span, after consume.Position) error {
	q.sending.Lock()
	q.spans, q.after = append(q.spans, spans...), after
	wait := len(q.spans) > 0 && len(q.spans) < maxBatchSpans
	q.sending.Unlock()
	if wait {
		return nil
	}
	return q.flush(ctx)
}

func (q *queue) flush(ctx context.Context) error {
	q.sending.Lock()
	defer q.sending.Unlock()
	if q.after == (consume.Position{}) {
		return nil
	}
	if err := q.send(ctx, q.spans); err != nil {
		return err
	}
	q.waits.Reset()
	q.spans = nil
	q.progress.Advance(q.after)
	q.recordPosition(q.after.Sequence)
	return nil
}

func countFitting(spans []tracing.Span) int {
	most, size := min(len(spans), maxBatchSpans), 0
	for i := range most {
		if size += spans[i].Size(); size > maxBatchBytes && i > 0 {
			return i
		}
	}
	return most
}

// send sends spans until the collector has accepted or rejected each of them. It fails only when ctx ends.
func (d *Delivery) send(ctx context.Context, spans []tracing.Span) error {
	for len(spans) > 0 {
		now := spans[:countFitting(spans)]
		err := backoff.RetryNotify(func() error {
			refused, err := d.Send(ctx, now)
			if err != nil && !errors.Is(err, errRejected) {
				return err
			}
			d.addCounts(len(now)-refused, refused)
			if refused > 0 {
				d.OnRejected(refused, err)
			}
			return nil
		}, backoff.WithContext(d.newBackOff(), ctx), func(err error, _ time.Duration) { d.reportError(err) })
		if err != nil {
			return err
		}
		spans = spans[len(now):]
	}
	return nil
}

func (d *Delivery) recordPosition(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sequence = seq
}

func (d *Delivery) addCounts(sent, refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sent += uint64(sent)        //nolint:gosec // a length
	d.state.Rejected += uint64(refused) //nolint:gosec // a length
	d.reported = ""
}

func (d *Delivery) reportError(err error) {
	d.mu.Lock()
	news := d.reported != err.Error()
	d.reported = err.Error()
	d.mu.Unlock()
	if news {
		d.Alarm(err)
	}
}
