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
)

const (
	// maxBatchSpans bounds the spans of one request. ahead bounds the commits that are read before the spans of earlier ones were sent.
	maxBatchSpans = 512
	maxReadAhead  = 64
	// maxBatchBytes bounds the bytes of one request. A collector rejects a request of more than 4 MiB, even if it is retried.
	maxBatchBytes = 1 << 20
	// saveInterval is the interval at which the position is saved. After a crash, the spans since the last save are sent again.
	saveInterval = 5 * time.Second
	saveTimeout  = 10 * time.Second
	// initialInterval and longest are the shortest and the longest wait between two attempts.
	initialInterval = time.Second
	maxInterval     = time.Minute
)

// Delivery sends the spans of a log when they have ended.
type Delivery struct {
	Log   consume.Log
	Store consume.Store
	// Send sends spans, as Sender.Send does.
	Send func(ctx context.Context, spans []tracing.Span) (refused int, err error)
	// Alarm is called with the reason when spans cannot be sent, once per reason.
	Alarm func(err error)
	// OnRejected is called for spans that the collector rejected.
	OnRejected func(spans int, err error)
	// InitialInterval is the first wait after an error, SaveInterval the interval between two saves; 0 is 1 s and 5 s.
	InitialInterval, SaveInterval time.Duration
	Logger                        *slog.Logger

	mu       sync.Mutex
	state    State
	reported string // the last error that was passed to Alarm
}

// State is the state of a delivery.
type State struct {
	// Sequence is the commit up to which all ended spans were sent.
	Sequence uint64
	// Sent and Refused count spans since the start.
	Sent, Rejected uint64
}

// State returns the current state.
func (d *Delivery) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// batch contains the spans that ended with some commits, and the position after these commits.
type batch struct {
	spans []tracing.Span
	after consume.Position
}

// Run sends spans until ctx ends. After an error it continues automatically at the saved position, and sends later spans again.
func (d *Delivery) Run(ctx context.Context) {
	waits := d.newBackOff()
	for ctx.Err() == nil {
		err := d.run(ctx, waits)
		if ctx.Err() != nil {
			return
		}
		d.reportError(err)
		select {
		case <-ctx.Done():
		case <-time.After(waits.NextBackOff()):
		}
	}
}

func (d *Delivery) newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(cmp.Or(d.InitialInterval, initialInterval)), backoff.WithMaxInterval(maxInterval), backoff.WithMaxElapsedTime(0))
}

// run reads the log and sends spans until reading or sending fails.
func (d *Delivery) run(ctx context.Context, waits *backoff.ExponentialBackOff) error {
	p, err := d.load(ctx)
	if err != nil {
		return err
	}
	d.recordPosition(p.Sequence)
	reading, cancel := context.WithCancel(ctx)
	ready, ended := make(chan batch, maxReadAhead), make(chan error, 1)
	go func() { ended <- d.read(reading, p, ready) }()
	err = d.sendAll(ctx, p, ready, ended, waits)
	cancel()
	if read := <-ended; err == nil {
		err = read
	}
	if errors.Is(err, consume.ErrRolledBack) {
		// The spans of lost commits remain at the collector. The spans of the commits that replaced them have other IDs.
		return errors.Join(err, d.save(ctx, consume.Position{LogID: p.LogID}))
	}
	return err
}

// load returns the saved position, or the beginning of the log if the position is of another log.
func (d *Delivery) load(ctx context.Context) (consume.Position, error) {
	p, err := d.Store.Load(ctx)
	if id := d.Log.ID(); err == nil && p.LogID != id {
		if p.LogID != "" {
			d.Logger.Warn("the position is of another event log: sending the spans of this log from its beginning", "position", p.LogID, "log", id)
		}
		p = consume.Position{LogID: id}
	}
	return p, err
}

// read applies the log. It does not send the spans that had ended at the position.
func (d *Delivery) read(ctx context.Context, p consume.Position, ready chan<- batch) error {
	fold := tracing.New(p.LogID)
	since := min(p.Since, p.Sequence)
	from := since
	if p.Sequence > 0 {
		from = min(from, p.Sequence-1) // the commit at the position is read again, for comparison
	}
	return d.Log.Follow(ctx, from, func(r eventlog.Record) error {
		if r.Seq == p.Sequence && !p.Matches(r) {
			return consume.ErrRolledBack
		}
		var b batch
		if r.Seq > since {
			var err error
			if b.spans, err = fold.Apply(r); err != nil && r.Seq > p.Sequence {
				d.Logger.Warn("a commit of the event log cannot be read, and is not part of any span", "sequence", r.Seq, "subject", r.Subject(), "error", err)
			}
		}
		if r.Seq <= p.Sequence {
			return nil
		}
		b.after = consume.PositionAfter(p.LogID, r)
		b.after.Since = fold.Since(r.Seq)
		select {
		case ready <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// sendAll sends the spans that are ready. It saves the position at intervals and at the end. It returns nil when the reading has ended.
func (d *Delivery) sendAll(ctx context.Context, p consume.Position, ready <-chan batch, ended chan error, waits *backoff.ExponentialBackOff) (err error) {
	at, saved := p, p
	save := func(ctx context.Context) error {
		if at == saved {
			return nil
		}
		err := d.save(ctx, at)
		if err == nil {
			saved = at
		}
		return err
	}
	defer func() { err = errors.Join(err, save(context.WithoutCancel(ctx))) }()
	tick := time.NewTicker(cmp.Or(d.SaveInterval, saveInterval))
	defer tick.Stop()
	for {
		select {
		case b := <-ready:
			b = mergeReady(b, ready)
			if err := d.send(ctx, b.spans); err != nil {
				return err
			}
			waits.Reset()
			at = b.after
			d.recordPosition(at.Sequence)
		case <-tick.C:
			if err := save(ctx); err != nil && ctx.Err() == nil {
				d.Logger.Warn("saving the position of the sent spans failed; retrying", "error", err)
			}
		case err := <-ended:
			ended <- err
			return nil
		}
	}
}

// mergeReady adds the batches that are ready, up to the size of a request.
func mergeReady(b batch, ready <-chan batch) batch {
	for n := 0; n < maxReadAhead && len(b.spans) < maxBatchSpans; n++ {
		select {
		case next := <-ready:
			b.spans, b.after = append(b.spans, next.spans...), next.after
		default:
			return b
		}
	}
	return b
}

// countFitting returns how many of the spans fit into a request.
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

func (d *Delivery) save(ctx context.Context, p consume.Position) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return d.Store.Save(ctx, p)
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

// reportError calls Alarm if the error has changed.
func (d *Delivery) reportError(err error) {
	d.mu.Lock()
	news := d.reported != err.Error()
	d.reported = err.Error()
	d.mu.Unlock()
	if news {
		d.Alarm(err)
	}
}
