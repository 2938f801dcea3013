package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// endDrop ends a drop that a process left undone: one that was decided is carried out, and what another one made is removed. A user that may not
// see or delete streams leaves it to one that may.
func (l *Log) endDrop(ctx context.Context) error {
	_, err := l.carryOut(ctx)
	if errors.Is(err, ErrPermission) {
		l.logger.Debug("event log: the deletion of dropped epochs is left to another user", "error", err)
		return nil
	}
	return err
}

// carryOut does what is decided. Each step is one change at the server and can be repeated, also by several processes at once: what is kept is
// never made under a name that was used, and an epoch is deleted only while what is kept of it is there, see removeDropped. It returns from when on the dropped epochs are deleted, if that is later.
func (l *Log) carryOut(ctx context.Context) (until time.Time, err error) {
	listed, err := l.list(ctx)
	if err != nil {
		return until, err
	}
	made, _ := l.spec.parts(listed)
	if len(made) == 0 {
		return until, nil
	}
	facts, err := l.decided(ctx)
	if err != nil {
		return until, err
	}
	if err := l.Floor().recorded(facts); err != nil {
		return until, err
	}
	decided := newest(facts)
	for _, name := range made {
		stream, err := getStream(ctx, l.js, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return until, explain(name, err)
		}
		switch config := stream.CachedInfo().Config; {
		case config.Metadata[identityKey] != l.id:
			return until, fmt.Errorf("%w: stream %s is of log %s, the log beside it is %s; remove what is not of this log", ErrConfig, name, config.Metadata[identityKey], l.id)
		case config.Metadata[makingKey] == "":
		case decided.Kept == name:
			err = l.complete(ctx, stream)
		default:
			err = l.abandon(ctx, name)
		}
		if err != nil {
			return until, err
		}
	}
	if _, err := l.reopen(ctx, l.epochs.Load()); err != nil {
		return until, err
	}
	return l.deleteDropped(ctx, decided)
}

// decided are the drops that the log records.
func (l *Log) decided(ctx context.Context) (facts []EpochsDropped, err error) {
	records, err := l.Read(ctx, Drops(), 0)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		err := NewEpochCatalog().Fold(r, func(e EpochEvent, _ time.Time) {
			if e, ok := e.(EpochsDropped); ok {
				facts = append(facts, e)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading which epochs were dropped: %w", err)
		}
	}
	return facts, nil
}

func newest(facts []EpochsDropped) (last EpochsDropped) {
	if len(facts) > 0 {
		last = facts[len(facts)-1]
	}
	return last
}

// recorded fails if no drop has made the floor: somebody else put it in the place of a log that was lost.
func (f *Floor) recorded(facts []EpochsDropped) error {
	if f == nil || slices.ContainsFunc(facts, func(e EpochsDropped) bool {
		return e.Kept == f.Stream && e.Through == f.Through && e.Floor == f.Seq
	}) {
		return nil
	}
	return fmt.Errorf("%w: stream %s says that the commits below %d were dropped, and no commit records that: they were lost, or that commit was; restore the log from a backup or a mirror, and retain a copy of the stream until then",
		ErrMissing, f.Stream, f.Seq)
}

// complete makes a stream the beginning of the log, if it is whole.
func (l *Log) complete(ctx context.Context, stream jetstream.Stream) error {
	info := stream.CachedInfo()
	f, err := floorOf(info.Config)
	if err != nil {
		return err
	}
	if err := f.whole(info.State); err != nil {
		// The server lost its power before it had written it. None of the epochs has been deleted: the next drop makes it again.
		l.logger.Warn("event log: epochs are not dropped, though that is decided", "error", err)
		return nil
	}
	f.Since = info.TimeStamp.UTC()
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	config.Metadata[keptKey] = string(text)
	delete(config.Metadata, makingKey)
	config.Sealed = true
	config.MaxBytes = int64(max(info.State.Bytes, 1)) //nolint:gosec // the server has it as an int64
	if err := l.update(ctx, config); err != nil {
		return err
	}
	l.reached("switched")
	return nil
}

// abandon removes what a process made that did not decide to use it. First it makes sure that it never will.
func (l *Log) abandon(ctx context.Context, name string) error {
	for {
		before, _, err := l.newest(ctx, Drops().Subject())
		if err != nil {
			return err
		}
		if facts, err := l.decided(ctx); err != nil || newest(facts).Kept == name {
			return err // it was decided in this moment: the process that did so carries it out
		}
		err = l.sayDrop(ctx, before.Seq, "abandon/"+name, "daemon/eventlog", time.Now(), DropAbandoned{Kept: name})
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		return l.remove(ctx, name)
	}
}

// deleteDropped deletes the streams that the log does not begin with any more: the first one first, so that nobody takes the rest for a log.
func (l *Log) deleteDropped(ctx context.Context, decided EpochsDropped) (until time.Time, err error) {
	f := l.Floor()
	if f == nil || decided.Kept != f.Stream || decided.Through != f.Through || decided.Floor != f.Seq {
		return until, nil
	}
	listed, err := l.list(ctx)
	if err != nil {
		return until, err
	}
	kept, epochs := l.spec.parts(listed)
	var old []string
	for _, number := range slices.Sorted(maps.Keys(epochs)) {
		if number <= f.Through {
			old = append(old, epochs[number])
		}
	}
	for _, name := range kept {
		if through, ok := l.spec.parseKept(name); ok && through <= f.Through && name != f.Stream {
			old = append(old, name)
		}
	}
	if len(old) > 0 && !l.spec.synced {
		if until, err = l.settles(ctx, f); err != nil || time.Now().Before(until) {
			return until, err
		}
	}
	for _, name := range old {
		if err := l.removeDropped(ctx, name, f.Stream); err != nil {
			return until, err
		}
		l.reached("deleted")
	}
	return time.Time{}, nil
}

// settles is when what is kept is surely on the disk of the server, by this process's clock. That time is counted by the server's: another process may
// have begun it, whose clock is another one.
func (l *Log) settles(ctx context.Context, f *Floor) (time.Time, error) {
	stream, err := getStream(ctx, l.js, f.Stream)
	if err != nil {
		return time.Time{}, explain(f.Stream, err)
	}
	return time.Now().Add(f.Since.Add(l.settled).Sub(stream.CachedInfo().TimeStamp)), nil
}

// removeDropped deletes a stream that was dropped, while what is kept of it is there. Without that the log is another one, made again from its
// archive while this process slept, and its epochs have the names of those that were dropped.
func (l *Log) removeDropped(ctx context.Context, name, kept string) error {
	dropped, err := getStream(ctx, l.js, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return explain(name, err)
	}
	// An empty one was made again by a writer that slept since before the drop, and knew of no later epoch.
	if info := dropped.CachedInfo(); !info.Config.Sealed && info.State.Msgs > 0 || identity(info) != l.id {
		return fmt.Errorf("%w: stream %s is not of an epoch that was dropped any more: nothing else is deleted", ErrConfig, name)
	}
	if _, err := getStream(ctx, l.js, kept); err != nil {
		return explain(kept, err)
	}
	return l.remove(ctx, name)
}
