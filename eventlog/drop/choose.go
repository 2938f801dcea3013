package drop

import (
	"context"
	"errors"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// choose counts what is kept, and checks that a view of it is the one that has followed all along.
func (p *Plan) choose(ctx context.Context, again Judge) error {
	digest, objects := new(seal.Sum), make(map[eventlog.Aggregate]bool)
	var had uint64
	err := p.each(ctx, p.Floor, func(r eventlog.Record) error {
		p.tell.say("choosing", r.Seq, p.Floor)
		if r.Dropped() {
			p.Tombstones++
		} else {
			_ = again.Apply(r)
			if r.Seq < p.Floor {
				p.Kept++
				objects[r.Aggregate] = true
			}
		}
		if r.Seq == p.Floor {
			return nil
		}
		digest.Add(seal.MessageOf(r))
		if p.floor.First == 0 {
			p.floor.First = r.Seq
		}
		p.KeptBytes += stored(r)
		return nil
	}, func() { had++ })
	if err != nil {
		return err
	}
	for a := range objects {
		p.Objects[a.Kind]++
	}
	p.Dropped = had - p.Kept
	p.floor.Commits, p.floor.Tombstones = p.Kept, p.Tombstones
	p.digest = digest.Checkpoint(p.LogID).Root
	followed, err := p.judge.Hash()
	kept, err2 := again.Hash()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if followed != kept {
		return errors.New("a view of what would be kept is not the one that has followed the log all along: nothing was changed; this is a defect of scute, report it")
	}
	return nil
}

// each hands over what is kept, up to a sequence. had is called for each commit that the epochs have; it may be nil.
func (p *Plan) each(ctx context.Context, until uint64, fn func(eventlog.Record) error, had func()) error {
	return p.log.Remains(ctx, until, func(r eventlog.Record) error {
		if had != nil && !r.Dropped() && r.Seq < p.Floor {
			had()
		}
		switch {
		case r.Seq >= p.Floor, p.judge.Stays(r.Aggregate):
			return fn(r)
		case p.last[r.Aggregate] == r.Seq:
			return fn(r.Tombstone())
		}
		return nil
	})
}

// stored is about what a commit takes in a stream: its parts, a record's header and checksum, and what the header has beside its values.
func stored(r eventlog.Record) uint64 {
	n := len(r.Subject()) + len(r.Data()) + 64
	for name, values := range r.Header() {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return uint64(n) //nolint:gosec // not negative
}
