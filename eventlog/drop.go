package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Drop is what DropEpochs does. Package drop makes one, and decides what is kept.
type Drop struct {
	Actor, Reason string
	Time          time.Time
	// Floor is the one that the log gets; its Stream is set here.
	Floor Floor
	// Root is that of the tree of the commits below the floor, in base64.
	Root string
	// Archive has them all.
	Archive Archived
	// Bytes is at least as much as what is kept takes in a stream.
	Bytes int64
	// Kept writes what is kept as a snapshot that a NATS server restores a stream from.
	Kept func(ctx context.Context, w io.Writer) error
	// Check reads what the server has of it then. Its error refuses the drop.
	Check func(ctx context.Context, remains func(ctx context.Context, fn func(Record) error) error) error
	// Waiting is told what the drop waits for when all of what is kept was sent; nil tells nobody.
	Waiting func(what string)
	// Unsettled is told until when the dropped epochs are not deleted yet, because the server may not have written to its disk what is kept.
	// It returns an error to leave that to the next writer, or the next drop, that comes later. nil leaves it.
	Unsettled func(ctx context.Context, until time.Time) error
}

// DropEpochs drops the first epochs of the log, all of which are closed. Their streams are deleted; what had not ended stays readable as it was, in
// one stream. Sequences do not change. Until the event that records it is appended nothing has changed; from then on the next writer that
// opens the log ends what a process that dies has left undone. It fails with ErrNothingToDrop if that is so, with ErrNoRoom if the
// server has no room for what is kept beside the epochs, and with ErrConflict if another process drops epochs at the same time.
func (l *Log) DropEpochs(ctx context.Context, d Drop) error {
	if err := l.dropEpochs(ctx, d); err != nil {
		return fmt.Errorf("dropping the epochs of the log up to %d: %w", d.Floor.Through, err)
	}
	return nil
}

func (l *Log) dropEpochs(ctx context.Context, d Drop) error {
	if err := CheckReason(d.Reason); err != nil {
		return err
	}
	before, err := l.toDrop(ctx, d.Floor.Through)
	if err != nil {
		return err
	}
	d.Floor.Stream = l.spec.keptName(d.Floor.Through, newID())
	if err := l.make(ctx, d); err != nil {
		return errors.Join(err, l.discard(ctx, d.Floor.Stream))
	}
	l.reached("made")
	if err := l.compare(ctx, d); err != nil {
		return errors.Join(err, l.discard(ctx, d.Floor.Stream))
	}
	l.reached("compared")
	err = l.sayDrop(ctx, before.Seq, "drop/"+d.Floor.Stream, d.Actor, d.Time, EpochsDropped{
		Through: d.Floor.Through, Floor: d.Floor.Seq, Root: d.Root, Kept: d.Floor.Stream, Commits: d.Floor.Commits, Tombstones: d.Floor.Tombstones,
		Archive: d.Archive, Reason: d.Reason,
	})
	if errors.Is(err, ErrConflict) {
		return errors.Join(fmt.Errorf("%w: another process drops epochs; run it again when that has ended", err), l.discard(ctx, d.Floor.Stream))
	}
	if err != nil {
		return err // whether it is decided is not known: the next writer knows
	}
	l.reached("decided")
	until, err := l.carryOut(ctx)
	if f := l.Floor(); err == nil && (f == nil || f.Through < d.Floor.Through) {
		err = fmt.Errorf("%w: stream %s lost what is kept; the epochs are still there: run it again", ErrGap, d.Floor.Stream)
	}
	for err == nil && !until.IsZero() && d.Unsettled != nil {
		if err = d.Unsettled(ctx, until); err == nil {
			until, err = l.carryOut(ctx)
		}
	}
	return err
}

// Droppable says why the epochs up to one cannot be dropped, before anything is changed. It ends a drop and a closing that began before.
func (l *Log) Droppable(ctx context.Context, through int) error {
	if _, err := l.state(ctx); err != nil {
		return err
	}
	if err := l.finish(ctx); err != nil {
		return err
	}
	if err := l.endDrop(ctx); err != nil {
		return err
	}
	open := l.current()
	switch f := l.Floor(); {
	case f != nil && through <= f.Through:
		return fmt.Errorf("%w: the epochs up to %d were dropped already", ErrNothingToDrop, f.Through)
	case through < 1 || through >= open.spec.number():
		return fmt.Errorf("%w: epoch %d is not closed: the log has the closed epochs up to %d; close the open one first (log close)", ErrNothingToDrop, through, open.spec.number()-1)
	}
	return nil
}

// toDrop is Droppable, and gives the last commit about drops that it knew of: one that comes after it may have dropped the same epochs.
func (l *Log) toDrop(ctx context.Context, through int) (last Record, err error) {
	for {
		if last, _, err = l.newest(ctx, Drops().Subject()); err != nil {
			return last, err
		}
		if err := l.Droppable(ctx, through); err != nil {
			return last, err
		}
		l.reached("droppable")
		now, _, err := l.newest(ctx, Drops().Subject())
		if err != nil || now.Seq == last.Seq {
			return last, err
		}
	}
}

// sayDrop appends a fact about drops.
func (l *Log) sayDrop(ctx context.Context, expected uint64, id, actor string, at time.Time, fact EpochEvent) error {
	ev, err := NewEpochCatalog().Encode(fact)
	if err != nil {
		return err
	}
	ev.Time, ev.Actor = at.UTC(), actor
	_, err = l.Append(ctx, Commit{Aggregate: Drops(), ID: id, Expected: expected, Events: []Event{ev}})
	return err
}

// make makes the stream with what is kept, under a name that nobody reads yet.
func (l *Log) make(ctx context.Context, d Drop) error {
	text, err := json.Marshal(d.Floor)
	if err != nil {
		return err
	}
	f := d.Floor
	config := l.spec.config()
	config.Name, config.Subjects, config.SubjectTransform, config.FirstSeq = f.Stream, []string{keptSubjects + strings.TrimPrefix(f.Stream, l.spec.name+KeptInfix)}, nil, 0
	config.Description = "event log of scute: what is kept of dropped epochs"
	config.Replicas, config.MaxBytes = l.current().stream.CachedInfo().Config.Replicas, d.Bytes
	config.Metadata = map[string]string{identityKey: l.id, keptKey: string(text), makingKey: "true"}
	err = l.denials.during(ctx, "$JS.API.STREAM", func(ctx context.Context) error {
		return l.denials.during(ctx, "$JS.SNAPSHOT.RESTORE", func(ctx context.Context) error {
			kept := jetstream.StreamState{Msgs: f.messages(), FirstSeq: f.First, LastSeq: f.Seq - 1}
			return upload{config: config, state: kept, archive: d.Kept, waiting: d.Waiting}.make(ctx, l.nc, l.js)
		})
	})
	if lacksRoom(err) {
		return fmt.Errorf("%w for what is kept of the epochs, %d bytes: %w: nothing was changed; %s", ErrNoRoom, d.Bytes, err, makeRoom)
	}
	return err
}

// compare reads what was made.
func (l *Log) compare(ctx context.Context, d Drop) error {
	stream, err := getStream(ctx, l.js, d.Floor.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: a process that opened the log meanwhile took this drop for one that had died, and removed what was made: nothing was changed; run it again", ErrConflict)
	}
	if err != nil {
		return explain(d.Floor.Stream, err)
	}
	e, err := l.spec.keptEpoch(stream)
	if err != nil {
		return err
	}
	made := &Log{nc: l.nc, js: l.js, id: l.id, logger: l.logger, spec: l.spec, host: l.host}
	made.epochs.Store(&[]epoch{e})
	return d.Check(ctx, func(ctx context.Context, fn func(Record) error) error { return made.Remains(ctx, d.Floor.Seq-1, fn) })
}

// discard removes a stream that was made and is not decided, and never will be.
func (l *Log) discard(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*requestTimeout)
	defer cancel()
	return l.remove(ctx, name)
}

// remove deletes a stream, if it is there.
func (l *Log) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	if l.host != nil {
		l.host.Leaves(name)
	}
	err := l.denials.during(ctx, "$JS.API.STREAM.DELETE."+name, func(ctx context.Context) error { return l.js.DeleteStream(ctx, name) })
	if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return fmt.Errorf("%w: deleting stream %s: %w", ErrUnavailable, name, err)
}
