package drop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/seal"
)

// Waits is told what a drop waits for; each may be nil: see eventlog.Drop.
type Waits struct {
	Replicas  func(what string)
	Unsettled func(ctx context.Context, until time.Time) error
}

// Carry drops the epochs as it is planned.
func (p *Plan) Carry(ctx context.Context, actor, reason string, now time.Time, waits Waits) (err error) {
	kept, err := newSpool(ctx, backup.ArchiveOf(p.state(), func(ctx context.Context, fn func(eventlog.Record) error) error {
		return p.each(ctx, p.Floor-1, func(r eventlog.Record) error {
			p.tell.say("copying", r.Seq, p.Floor-1)
			return fn(r)
		}, nil)
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	return p.log.DropEpochs(ctx, eventlog.Drop{
		Actor: actor, Reason: reason, Time: now, Floor: p.floor, Root: p.root.String(), Archive: p.Archive,
		Waiting: waits.Replicas, Unsettled: waits.Unsettled,
		Bytes: int64(p.KeptBytes + p.KeptBytes/8 + 1<<20), //nolint:gosec // what a stream takes
		Kept:  kept.copyTo, Check: p.check,
	})
}

// state is that of the stream with what is kept.
func (p *Plan) state() jetstream.StreamState {
	return jetstream.StreamState{Msgs: p.Kept + p.Tombstones, FirstSeq: p.floor.First, LastSeq: p.Floor - 1}
}

// check holds what the server has of what is kept against what was chosen.
func (p *Plan) check(ctx context.Context, remains func(ctx context.Context, fn func(eventlog.Record) error) error) error {
	digest := new(seal.Sum)
	err := remains(ctx, func(r eventlog.Record) error {
		p.tell.say("verifying", r.Seq, p.Floor-1)
		digest.Add(seal.MessageOf(r))
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading what is kept: %w", err)
	}
	if have := digest.Checkpoint(p.LogID).Root; have != p.digest {
		return fmt.Errorf("what the server has of what is kept is not what it was given: nothing was changed; run this again")
	}
	return nil
}
