package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"scute.dev/eventlog/consume"
)

// again is how long a delivery waits after an error before it continues, and how often a stopped one looks for another token.
const again = 10 * time.Second

// Delivery posts the events of a log to a Sink.
type Delivery struct {
	Log   consume.Log
	Store consume.Store
	Sink  *Sink
	// Alarm is told why nothing is delivered. stopped says that an operator has to decide.
	Alarm func(stopped bool, err error)
	// Again is how long to wait after an error; 0 is 10 s. SaveEvery is that of the consumer.
	Again, SaveEvery time.Duration
	Logger           *slog.Logger

	mu    sync.Mutex
	state State
	said  string // the error that was told last
}

// State is how a delivery is doing.
type State struct {
	// Sequence is the one up to which all events were taken.
	Sequence uint64
	// Stopped says that the receiver refused the event after it.
	Stopped bool
}

// State is how it is doing.
func (d *Delivery) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Run delivers until ctx ends. What the receiver refuses, or a log that went back and continued, stops it, until the token is another one,
// the position was moved, or the process begins again. After any other error it continues by itself, and repeats what was not saved.
func (d *Delivery) Run(ctx context.Context) {
	for ctx.Err() == nil {
		token, _ := d.Sink.Secret.token() // a token that cannot be read is an error of each try
		c := &consume.Consumer{Log: d.Log, Store: d.Store, Take: d.Sink.Send, Taken: d.taken, SaveEvery: d.SaveEvery, Logger: d.Logger}
		err := c.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		stopped := errors.Is(err, errRefused) || errors.Is(err, consume.ErrWentBack)
		position, _ := d.Store.Load(ctx) // before it is told: who hears of it may move the position at once
		d.failed(stopped, err)
		for d.wait(ctx) && stopped {
			if d.decided(ctx, token, position) {
				break
			}
		}
	}
}

// decided says that an operator has changed what a delivery may have been refused for.
func (d *Delivery) decided(ctx context.Context, token string, at consume.Position) bool {
	if now, err := d.Sink.Secret.token(); err == nil && now != token {
		return true
	}
	now, err := d.Store.Load(ctx)
	return err == nil && now != at
}

// wait returns false when ctx has ended.
func (d *Delivery) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(cmp.Or(d.Again, again)):
		return true
	}
}

// taken notes that all events up to a sequence were taken; at the beginning, that the delivery starts after it.
func (d *Delivery) taken(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq != d.state.Sequence {
		d.said = ""
	}
	d.state = State{Sequence: seq}
}

// failed notes why nothing is delivered, and tells what is new of it.
func (d *Delivery) failed(stopped bool, err error) {
	d.mu.Lock()
	d.state.Stopped = stopped
	news := d.said != err.Error()
	d.said = err.Error()
	d.mu.Unlock()
	if news {
		d.Alarm(stopped, err)
	}
}
