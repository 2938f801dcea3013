package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Closings is the aggregate on which somebody asks the daemon to close an epoch, and is answered. It is not the one that says where
// epochs end: an epoch that is being closed takes no request, so that none comes after the commit that ends it.
func Closings() Aggregate { return Aggregate{Kind: KindDaemon, ID: "closings"} }

// CloseRequested: somebody asks the daemon to close an epoch.
type CloseRequested struct {
	Epoch  int    `json:"epoch"`
	Reason string `json:"reason,omitempty"`
}

// CloseRefused: the daemon does not close the epoch that it was asked to close.
type CloseRefused struct {
	Epoch int `json:"epoch"`
	// Message says why, and what to do.
	Message string `json:"message"`
}

func (CloseRequested) isEpochEvent() {}
func (CloseRefused) isEpochEvent()   {}

// CloseRequest is a request to close an epoch, and the answer to it.
type CloseRequest struct {
	// Closing names the epoch, and who asked first, why and when.
	Closing
	// Refused says why the daemon does not close it; "" while it has not refused.
	Refused string

	// seq and id are of the last commit on the aggregate, and of the event of the request.
	seq uint64
	id  string
}

// RequestClose asks the daemon to close the open epoch of the log. Who may append may ask. If somebody has asked already and has no
// answer, that request is returned, and nothing is appended. It fails with ErrEmptyEpoch if there is nothing to close.
func (l *Log) RequestClose(ctx context.Context, c Closing) (CloseRequest, error) {
	r, err := l.requestClose(ctx, c)
	if err != nil {
		return CloseRequest{}, fmt.Errorf("asking for epoch %d of the log to be closed: %w", l.current().spec.number(), err)
	}
	return r, nil
}

func (l *Log) requestClose(ctx context.Context, c Closing) (CloseRequest, error) {
	state, err := l.state(ctx)
	if err != nil {
		return CloseRequest{}, err
	}
	e := l.current()
	if err := e.empty(state); err != nil {
		return CloseRequest{}, err
	}
	number := e.spec.number()
	for {
		before, open, err := l.lastClosing(ctx)
		if err != nil {
			return CloseRequest{}, err
		}
		if open && before.Epoch == number {
			return before, nil
		}
		asked := CloseRequest{Closing: Closing{Epoch: number, Actor: c.Actor, Reason: c.Reason, Time: c.Time.UTC()}, seq: before.seq}
		if l.current().spec.number() > number {
			return asked, nil // somebody closed it meanwhile
		}
		ev, err := NewEpochCatalog().Encode(CloseRequested{Epoch: number, Reason: c.Reason})
		if err != nil {
			return CloseRequest{}, err
		}
		ev.Time, ev.Actor = asked.Time, asked.Actor
		commit := closingCommit(asked, ev)
		receipt, err := l.Append(ctx, commit)
		if errors.Is(err, ErrConflict) {
			continue // somebody else asked, or the epoch was closed
		}
		asked.seq, asked.id = receipt.Seq, commit.ID+"/0"
		return asked, err
	}
}

// OpenCloseRequest is the request to close the open epoch that has no answer yet; ok is false if there is none.
func (l *Log) OpenCloseRequest(ctx context.Context) (r CloseRequest, ok bool, err error) {
	r, ok, err = l.lastClosing(ctx)
	if err != nil {
		return r, false, fmt.Errorf("looking for a request to close an epoch: %w", err)
	}
	return r, ok && r.Epoch == l.current().spec.number(), nil
}

// RefuseClose answers a request: the epoch is not closed, for a reason. If the epoch was closed meanwhile, or somebody else has
// answered, it does nothing.
func (l *Log) RefuseClose(ctx context.Context, r CloseRequest, actor, message string, now time.Time) error {
	ev, err := NewEpochCatalog().Encode(CloseRefused{Epoch: r.Epoch, Message: message})
	if err != nil {
		return err
	}
	ev.Time, ev.Actor, ev.Causation = now.UTC(), actor, r.id
	if _, err = l.Append(ctx, closingCommit(r, ev)); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("refusing to close epoch %d of the log: %w", r.Epoch, err)
	}
	return nil
}

// closingCommit is one that follows a request, or what is known before it, for its epoch alone.
func closingCommit(r CloseRequest, ev Event) Commit {
	c := Commit{Aggregate: Closings(), Expected: r.seq, Events: []Event{ev}, epoch: r.Epoch}
	c.ID = c.IDFor(ev.Actor)
	return c
}

// AwaitClose waits until the epoch of a request is closed and the next one is opened, or until the daemon refuses; then
// Refused of what it returns says why. Its error says that ctx ended, or that the log cannot be read.
func (l *Log) AwaitClose(ctx context.Context, r CloseRequest) (CloseRequest, error) {
	if _, err := l.state(ctx); err == nil && l.current().spec.number() > r.Epoch {
		return r, nil
	}
	catalog := NewEpochCatalog()
	err := l.Follow(ctx, r.seq, func(record Record) error {
		if record.Aggregate != Closings() && record.Aggregate != epochs() {
			return nil
		}
		over := false
		// What this program does not know is no answer.
		_ = catalog.Fold(record, func(e EpochEvent, _ time.Time) {
			switch e := e.(type) {
			case EpochOpened:
				over = over || e.Epoch > r.Epoch
			case CloseRefused:
				if e.Epoch == r.Epoch {
					r.Refused, over = e.Message, true
				}
			}
		})
		if over {
			return errAnswered
		}
		return nil
	})
	if errors.Is(err, errAnswered) {
		err = nil
	}
	return r, err
}

// errAnswered ends a wait.
var errAnswered = errors.New("answered")

// lastClosing is the last request that was made, with seq of the last commit about requests. It is open while nobody has
// refused it, and no epoch was opened since; whether its epoch is the open one is for the caller to see. The number alone does not tell: a
// log that was restored from a backup begins again with epoch 1, and has the requests for those of the backup.
func (l *Log) lastClosing(ctx context.Context) (r CloseRequest, open bool, err error) {
	last, ok, err := l.newest(ctx, Closings().Subject())
	if err != nil || !ok {
		return r, false, err
	}
	if r, open = closeRequest(last); !open {
		return r, false, nil
	}
	boundary, ok, err := l.newest(ctx, epochs().Subject())
	if err != nil {
		return r, false, err
	}
	_, opens := boundary.OpensEpoch()
	return r, !ok || !opens || boundary.Seq < last.Seq, nil
}

// closeRequest is what a commit about requests says. asks is false for a refusal, and for what this program does not know.
func closeRequest(last Record) (r CloseRequest, asks bool) {
	r.seq = last.Seq
	events, err := last.Events()
	if err != nil || len(events) == 0 {
		return r, false
	}
	ev := events[len(events)-1]
	fact, err := NewEpochCatalog().Decode(ev)
	if err != nil {
		return r, false
	}
	switch fact := fact.(type) {
	case CloseRequested:
		r.id, asks = ev.ID, true
		r.Closing = Closing{Epoch: fact.Epoch, Actor: ev.Actor, Reason: fact.Reason, Time: ev.Time}
	case CloseRefused:
		r.Epoch, r.Refused = fact.Epoch, fact.Message
	}
	return r, asks
}
