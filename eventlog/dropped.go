package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrDropped: what is asked for is in an epoch that was dropped. It is in the archive that was made before.
var ErrDropped = errors.New("dropped from the log")

// ErrNothingToDrop: the epochs that were named are not closed, or are not there any more.
var ErrNothingToDrop = errors.New("there is nothing to drop")

const readArchive = "read it in the archive: the backup of the log that was made before its epochs were dropped"

// DroppedError says that the commits of an aggregate were dropped up to one. It is an ErrDropped.
type DroppedError struct {
	Aggregate Aggregate
	// Last is the sequence of the last commit that was dropped. What follows it is there.
	Last uint64
}

func (e *DroppedError) Error() string {
	return fmt.Sprintf("%v: %s had ended, and its commits up to %d were dropped with their epochs; %s", ErrDropped, e.Aggregate, e.Last, readArchive)
}

// Is makes it an ErrDropped.
func (e *DroppedError) Is(target error) bool { return target == ErrDropped }

// headerDropped marks a tombstone: a message without data in the place of the last commit of an aggregate whose commits were dropped. It
// has the commit's message ID.
const headerDropped = "Scute-Dropped"

// Tombstone takes the place of the last commit of an aggregate whose commits are dropped, so that the aggregate does not begin a second time.
func (r Record) Tombstone() Record {
	h := map[string][]string{headerDropped: {"true"}}
	if id := r.header["Nats-Msg-Id"]; len(id) > 0 {
		h["Nats-Msg-Id"] = id
	}
	return NewRecord(r.Seq, r.Stored, r.subject, h, nil)
}

// Dropped says that the record is a tombstone.
func (r Record) Dropped() bool { return len(r.header[headerDropped]) > 0 }

// droppedBelow is the error of a reader that is at a position in the dropped epochs.
func (f *Floor) droppedBelow(after uint64) error {
	return fmt.Errorf("%w: the commits after %d: the log is whole from %d on, because its epochs up to %d were dropped; %s, or begin at the beginning of what is kept",
		ErrDropped, after, f.Seq, f.Through, readArchive)
}

// Elsewhere ends a sentence that says that something is not in the log: it may be in what was dropped. It is empty if nothing was.
func (f *Floor) Elsewhere() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("; its epochs up to %d were %v, and what had ended by then is in their archive", f.Through, ErrDropped)
}

// Lacks fails with ErrDropped if a log with this floor does not have every commit after a sequence.
func (f *Floor) Lacks(after uint64) error {
	if f.lacks(after) {
		return f.droppedBelow(after)
	}
	return nil
}

// reopen looks whether streams that are not there any more were dropped meanwhile. It returns true if the log now begins with what is
// kept of them, so that a caller that found them missing tries again; so it does if another one has found that since the caller began with
// the epochs that it has seen. It fails with ErrUnavailable if the server cannot say now: then they are not known to be lost.
func (l *Log) reopen(ctx context.Context, seen *[]epoch) (bool, error) {
	if l.epochs.Load() != seen {
		return true, nil
	}
	kept, ok, err := l.lookForKept(ctx)
	if err != nil || !ok || identity(kept.stream.CachedInfo()) != l.id {
		return false, err
	}
	l.moving.Lock()
	defer l.moving.Unlock()
	if l.epochs.Load() != seen {
		return true, nil
	}
	before := l.all()
	if f := before[0].spec.kept; f != nil && (f.Through > kept.spec.epoch || f.Stream == kept.spec.stream()) {
		return false, nil
	}
	after := slices.DeleteFunc(slices.Clone(before), func(e epoch) bool { return e.spec.kept != nil || e.spec.number() <= kept.spec.epoch })
	list := append([]epoch{kept}, after...)
	if l.host != nil {
		if l.host.Continues(kept.spec.stream()) != nil {
			return false, nil
		}
		for _, e := range before {
			if !slices.ContainsFunc(list, func(o epoch) bool { return o.spec.stream() == e.spec.stream() }) {
				l.host.Leaves(e.spec.stream())
			}
		}
	}
	l.epochs.Store(&list)
	return true, nil
}

// lookForKept opens the stream with what is kept, if there is one that is whole.
func (l *Log) lookForKept(ctx context.Context) (e epoch, ok bool, err error) {
	listed, err := l.list(ctx)
	if err == nil {
		e, ok, err = l.findKept(ctx, &listed)
	}
	switch {
	case err == nil:
		return e, ok, nil
	case errors.Is(err, ErrPermission) || !errors.Is(err, ErrUnavailable):
		return e, false, nil
	default:
		return e, false, fmt.Errorf("looking for what is kept of dropped epochs: %w", err)
	}
}

// list are the streams of the server that may be of the log.
func (l *Log) list(ctx context.Context) (out []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = l.denials.during(ctx, "$JS.API.STREAM.NAMES", func(ctx context.Context) error {
		out, err = names(ctx, l.js)
		return err
	})
	return out, err
}

// again does something once more if streams were missing because they were dropped meanwhile.
func (l *Log) again(ctx context.Context, do func() error) error {
	for {
		seen := l.epochs.Load()
		err := do()
		if !errors.Is(err, ErrMissing) {
			return err
		}
		if found, unknown := l.reopen(ctx, seen); !found {
			return cmp.Or(unknown, err)
		}
	}
}

// absent says why a commit that is not there is not there.
func (l *Log) absent(r Record, ok bool, seq uint64) error {
	switch f := l.Floor(); {
	case ok && r.Dropped():
		return &DroppedError{Aggregate: r.Aggregate, Last: r.Seq}
	case ok:
		return nil
	case f.below(seq) && seq > 0:
		return fmt.Errorf("%w: the log is whole from %d on, because its epochs up to %d were dropped; %s", ErrDropped, f.Seq, f.Through, readArchive)
	default:
		return fmt.Errorf("%w: the log has no such commit", ErrGap)
	}
}

// Remains hands over everything below the floor that is kept, tombstones too, and then every commit up to a sequence. It is what the
// next drop chooses from. Without a floor it is Replay up to that sequence.
func (l *Log) Remains(ctx context.Context, until uint64, fn func(Record) error) error {
	r := &reading{until: until, fn: fn}
	if err := l.read(ctx, r, replayPatience); err != nil {
		return fmt.Errorf("reading what remains of the log: at %d: %w", r.cursor, err)
	}
	return nil
}

// settledAfter is how long after the stream with what is kept was whole the dropped epochs are deleted from a server that may not sync
// what it stores: the server syncs it every two minutes unless it is told otherwise.
const settledAfter = 5 * time.Minute
