package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"scute.dev/export/consume"
	"scute.dev/internal/sleep"
)

// retryInterval is the wait after an error. A stopped delivery also checks at this interval whether
// the token has changed.
const retryInterval = 10 * time.Second

// Delivery posts the events of a log to a Sink.
type Delivery struct {
	Log   consume.Log
	Store consume.Store
	Sink  *Sink
	// Alarm is called with the reason when events are not delivered. stopped is true if the delivery
	// has stopped until an operator decides.
	Alarm func(stopped bool, err error)
	// RetryInterval is the wait after an error; 0 means 10 s. SaveInterval is passed to the consumer.
	RetryInterval, SaveInterval time.Duration
	Logger                      *slog.Logger

	mu       sync.Mutex
	state    State
	reported string // the last error that was passed to Alarm
}

// State is the state of a delivery.
type State struct {
	// Sequence is the last commit whose events were all accepted.
	Sequence uint64
	// Stopped is true if the receiver rejected the next event.
	Stopped bool
}

// State returns the current state.
func (d *Delivery) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Run delivers events until ctx ends. It stops delivering when the receiver rejects an event, or
// when the log has lost commits and received others. After that, it continues only after the token
// or the position was changed, or in a new process. After any other error it continues
// automatically, and posts the events after the saved position again.
func (d *Delivery) Run(ctx context.Context) {
	for ctx.Err() == nil {
		token, _ := d.Sink.Secret.token() // if the token cannot be read, each attempt returns the error
		c := &consume.Consumer{Log: d.Log, Store: d.Store, Deliver: d.Sink.Send, Delivered: d.recordDelivered, SaveInterval: d.SaveInterval, Logger: d.Logger}
		err := c.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		stopped := errors.Is(err, errRejected) || errors.Is(err, consume.ErrRolledBack)
		position, _ := d.Store.Load(ctx) // read before Alarm, because an operator may change the position as soon as they are notified
		d.reportError(stopped, err)
		for sleep.For(ctx, cmp.Or(d.RetryInterval, retryInterval)) == nil && stopped {
			if d.operatorActed(ctx, token, position) {
				break
			}
		}
	}
}

func (d *Delivery) operatorActed(ctx context.Context, token string, at consume.Position) bool {
	if now, err := d.Sink.Secret.token(); err == nil && now != token {
		return true
	}
	now, err := d.Store.Load(ctx)
	return err == nil && now != at
}

// recordDelivered records the sequence up to which all events were accepted. The first call has the
// sequence after which the delivery starts.
func (d *Delivery) recordDelivered(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq != d.state.Sequence {
		d.reported = ""
	}
	d.state = State{Sequence: seq}
}

func (d *Delivery) reportError(stopped bool, err error) {
	d.mu.Lock()
	d.state.Stopped = stopped
	news := d.reported != err.Error()
	d.reported = err.Error()
	d.mu.Unlock()
	if news {
		d.Alarm(stopped, err)
	}
}
