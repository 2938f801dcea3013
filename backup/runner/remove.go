package runner

import (
	"context"
	"errors"
	"slices"

	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/mover/archive"
)

const (
	// These limit the backups in one event, so that it fits into the log.
	maxExpiredPerEvent = 1000
	maxRemovedPerEvent = 100
)

// remove deletes the backups that are no longer kept. If a path contains something other than the
// backup, remove does not change it, and the schedule no longer tracks it.
func (d *drive) remove(ctx, bounded context.Context) error {
	if err := d.expire(ctx); err != nil {
		return err
	}
	if d.State.Finished() {
		return nil
	}
	spec := d.State.Spec
	from, err := d.runner.open(bounded, &spec)
	if err != nil {
		return d.recordRemovalFailure(ctx, bounded, err)
	}
	defer from.Close()
	for {
		batch := removal{incomplete: slices.Clone(d.State.Incomplete), expiring: slices.Clone(d.State.Expiring)}
		done, err := onVolume(bounded, d.runner, &spec, func() (removal, error) { return batch.remove(bounded, from) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, b := range done.found {
			if err := d.record(ctx, schedule.Completed{Backup: b}); err != nil {
				return err
			}
		}
		gone := done.gone
		some := len(gone.Backups)+len(gone.Incomplete)+len(gone.Foreign) > 0
		if some {
			if err := d.record(ctx, gone); err != nil {
				return err
			}
		}
		if err != nil {
			return d.recordRemovalFailure(ctx, bounded, err)
		}
		if !some || d.State.Finished() || !d.State.Spec.Destination.SameLocation(spec.Destination) { // another destination may have been set meanwhile
			return nil
		}
	}
}

func (d *drive) recordRemovalFailure(ctx, bounded context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.record(ctx, schedule.RemovalFailed{Problem: d.fail("old backups cannot be removed", wrapTimeout(bounded, err))})
}

// expire records which backups are no longer kept before any is deleted, so that half of a backup
// is not shown as a backup. After a conflict it decides again, because more backups may be kept
// now.
func (d *drive) expire(ctx context.Context) error {
	return d.Decide(ctx, d.refresh, func(s *schedule.State) ([]schedule.Event, error) {
		expired := schedule.Expired(s)
		if len(expired) == 0 {
			return nil, nil
		}
		var ids []string
		for _, b := range expired[:min(len(expired), maxExpiredPerEvent)] {
			ids = append(ids, b.ID)
		}
		return []schedule.Event{schedule.RemovalStarted{Backups: ids}}, nil
	})
}

// removal deletes backups. It has no state of the schedule, because it may be abandoned.
type removal struct {
	incomplete []schedule.Attempt
	expiring   []schedule.Backup

	gone schedule.Removed
	// found contains failed attempts whose backups are complete after all, for example because the
	// response to the last write was lost. If no backup has succeeded since, one of them may be the
	// last good backup.
	found []schedule.Backup
}

func (r removal) remove(ctx context.Context, from store.Store) (removal, error) {
	for _, a := range r.incomplete[:min(len(r.incomplete), maxRemovedPerEvent)] {
		if !a.Superseded {
			head, err := store.CompleteHead(ctx, from, a.Path)
			if err != nil && !errors.Is(err, archive.ErrDamaged) {
				return r, err
			}
			if err == nil && head.ID == a.ID {
				r.found = append(r.found, schedule.Backup{ID: a.ID, Path: a.Path, TakenAt: head.TakenAt})
				return r, nil
			}
		}
		removed, err := r.removeAt(ctx, from, a.Path, a.ID)
		if err != nil {
			return r, err
		}
		if removed {
			r.gone.Incomplete = append(r.gone.Incomplete, a.Path)
		}
	}
	for _, b := range r.expiring[:min(len(r.expiring), maxRemovedPerEvent)] {
		removed, err := r.removeAt(ctx, from, b.Path, b.ID)
		if err != nil {
			return r, err
		}
		if removed {
			r.gone.Backups = append(r.gone.Backups, b)
		}
	}
	return r, nil
}

// removeAt deletes the backup at a path, and reports whether it did. If the path contains something
// else, it records that.
func (r *removal) removeAt(ctx context.Context, from store.Store, place, id string) (bool, error) {
	err := store.Remove(ctx, from, place, id)
	if errors.Is(err, store.ErrForeign) {
		r.gone.Foreign = append(r.gone.Foreign, place)
		return false, nil
	}
	return err == nil, err
}
