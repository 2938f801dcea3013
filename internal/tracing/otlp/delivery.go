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
	"scute.dev/eventlog/consume"
	"scute.dev/internal/tracing"
)

const (
	// atOnce bounds the spans of one request, and ahead the commits that are read before the spans of earlier ones were taken.
	atOnce = 512
	ahead  = 64
	// atOnceBytes bounds the bytes of one request. A collector denies one of more than 4 MiB, and would deny it again and again.
	atOnceBytes = 1 << 20
	// saveEvery is how often the position is saved, and so how much is sent again after a crash.
	saveEvery   = 5 * time.Second
	saveTimeout = 10 * time.Second
	// first and longest are the waits between two tries.
	first   = time.Second
	longest = time.Minute
)

// Delivery sends the spans of a log as they end.
type Delivery struct {
	Log   consume.Log
	Store consume.Store
	// Send is Sender.Send.
	Send func(ctx context.Context, spans []tracing.Span) (refused int, err error)
	// Alarm is told why nothing is sent for now, once per reason.
	Alarm func(err error)
	// GivenUp is told of spans that the collector refused.
	GivenUp func(spans int, err error)
	// First is the first wait after an error, SaveEvery the time between two saves; 0 is 1 s and 5 s.
	First, SaveEvery time.Duration
	Logger           *slog.Logger

	mu    sync.Mutex
	state State
	said  string // the error that was told last
}

// State is how a delivery is doing.
type State struct {
	// Sequence is the one up to which the spans that ended were sent.
	Sequence uint64
	// Sent and Refused count spans since the start.
	Sent, Refused uint64
}

// State is how it is doing.
func (d *Delivery) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// batch is what ended with some commits, and the position after them.
type batch struct {
	spans []tracing.Span
	after consume.Position
}

// Run sends until ctx ends. After an error it continues by itself, and sends again what was not saved as sent.
func (d *Delivery) Run(ctx context.Context) {
	waits := d.waits()
	for ctx.Err() == nil {
		err := d.run(ctx, waits)
		if ctx.Err() != nil {
			return
		}
		d.failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(waits.NextBackOff()):
		}
	}
}

func (d *Delivery) waits() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(cmp.Or(d.First, first)), backoff.WithMaxInterval(longest), backoff.WithMaxElapsedTime(0))
}

// run reads and sends until one of both fails.
func (d *Delivery) run(ctx context.Context, waits *backoff.ExponentialBackOff) error {
	p, err := d.load(ctx)
	if err != nil {
		return err
	}
	d.taken(p.Sequence)
	reading, cancel := context.WithCancel(ctx)
	ready, ended := make(chan batch, ahead), make(chan error, 1)
	go func() { ended <- d.read(reading, p, ready) }()
	err = d.sendAll(ctx, p, ready, ended, waits)
	cancel()
	if read := <-ended; err == nil {
		err = read
	}
	if errors.Is(err, consume.ErrWentBack) {
		// The spans of what the log lost cannot be taken back; those of what it has instead have other identifiers.
		return errors.Join(err, d.save(ctx, consume.Position{LogID: p.LogID}))
	}
	return err
}

// load returns where to continue: at the beginning of a log that is another one.
func (d *Delivery) load(ctx context.Context) (consume.Position, error) {
	p, err := d.Store.Load(ctx)
	if id := d.Log.ID(); err == nil && p.LogID != id {
		if p.LogID != "" {
			d.Logger.Warn("the position is of another event log: the spans of this one are sent from its beginning", "position", p.LogID, "log", id)
		}
		p = consume.Position{LogID: id}
	}
	return p, err
}

// read folds the log. What had ended at the position was sent.
func (d *Delivery) read(ctx context.Context, p consume.Position, ready chan<- batch) error {
	fold := tracing.New(p.LogID)
	since := min(p.Since, p.Sequence)
	from := since
	if p.Sequence > 0 {
		from = min(from, p.Sequence-1) // the commit at the position is read again, and compared
	}
	return d.Log.Follow(ctx, from, func(r eventlog.Record) error {
		if r.Seq == p.Sequence && !p.Holds(r) {
			return consume.ErrWentBack
		}
		var b batch
		if r.Seq > since {
			var err error
			if b.spans, err = fold.Apply(r); err != nil && r.Seq > p.Sequence {
				d.Logger.Warn("a commit of the event log cannot be read, and is no part of any span", "sequence", r.Seq, "subject", r.Subject(), "error", err)
			}
		}
		if r.Seq <= p.Sequence {
			return nil
		}
		b.after = consume.After(p.LogID, r)
		b.after.Since = fold.Since(r.Seq)
		select {
		case ready <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// sendAll sends what is ready, and saves the position now and then and at the end. It returns nil when the reading has ended.
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
	tick := time.NewTicker(cmp.Or(d.SaveEvery, saveEvery))
	defer tick.Stop()
	for {
		select {
		case b := <-ready:
			b = more(b, ready)
			if err := d.send(ctx, b.spans); err != nil {
				return err
			}
			waits.Reset()
			at = b.after
			d.taken(at.Sequence)
		case <-tick.C:
			if err := save(ctx); err != nil && ctx.Err() == nil {
				d.Logger.Warn("how far the spans of the event log were sent is not saved; it is tried again", "error", err)
			}
		case err := <-ended:
			ended <- err
			return nil
		}
	}
}

// more adds what is ready too, up to the size of a request.
func more(b batch, ready <-chan batch) batch {
	for n := 0; n < ahead && len(b.spans) < atOnce; n++ {
		select {
		case next := <-ready:
			b.spans, b.after = append(b.spans, next.spans...), next.after
		default:
			return b
		}
	}
	return b
}

// fit is how many of the spans a request has.
func fit(spans []tracing.Span) int {
	most, size := min(len(spans), atOnce), 0
	for i := range most {
		if size += spans[i].Size(); size > atOnceBytes && i > 0 {
			return i
		}
	}
	return most
}

// send sends spans until the collector has taken or refused each of them. It fails only when ctx ends.
func (d *Delivery) send(ctx context.Context, spans []tracing.Span) error {
	for len(spans) > 0 {
		now := spans[:fit(spans)]
		err := backoff.RetryNotify(func() error {
			refused, err := d.Send(ctx, now)
			if err != nil && !errors.Is(err, errRefused) {
				return err
			}
			d.counted(len(now)-refused, refused)
			if refused > 0 {
				d.GivenUp(refused, err)
			}
			return nil
		}, backoff.WithContext(d.waits(), ctx), func(err error, _ time.Duration) { d.failed(err) })
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

func (d *Delivery) taken(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sequence = seq
}

func (d *Delivery) counted(sent, refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Sent += uint64(sent)       //nolint:gosec // a length
	d.state.Refused += uint64(refused) //nolint:gosec // a length
	d.said = ""
}

// failed tells what is new of why nothing is sent.
func (d *Delivery) failed(err error) {
	d.mu.Lock()
	news := d.said != err.Error()
	d.said = err.Error()
	d.mu.Unlock()
	if news {
		d.Alarm(err)
	}
}
