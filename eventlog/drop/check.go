package drop

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

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
