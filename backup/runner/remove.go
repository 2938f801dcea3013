package runner

import (
	"context"
	"errors"

	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/mover/archive"
)

const (
	// maxExpiredPerEvent and maxRemovedPerEvent limit the backups in one event, so that it fits into the log.
	maxExpiredPerEvent = 1000
	maxRemovedPerEvent = 100
)

// remove deletes backups that are no longer kept. If a path has other content, it does not change
// it, and stops tracking the path.
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
		gone, found, err := d.removeBatch(bounded, from)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, b := range found {
			if err := d.record(ctx, schedule.Completed{Backup: b}); err != nil {
				return err
			}
		}
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

// expire records which backups are no longer kept before any of them is deleted, so that half of a backup is not shown as a backup. If another
// process has appended first, it decides again, because more backups may be kept now.
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

// removeBatch deletes a limited number of backups. It returns failed attempts that are complete after all, for example because the response to the
// last write was lost: unless a backup succeeded since, they may be the last good one.
func (d *drive) removeBatch(ctx context.Context, from store.Store) (gone schedule.Removed, found []schedule.Backup, err error) {
	for i, a := range d.State.Incomplete {
		if i == maxRemovedPerEvent {
			return gone, found, nil
		}
		if !a.Superseded {
			head, err := store.CompleteHead(ctx, from, a.Path)
			if err != nil && !errors.Is(err, archive.ErrDamaged) {
				return gone, found, err
			}
			if err == nil && head.ID == a.ID {
				return gone, append(found, schedule.Backup{ID: a.ID, Path: a.Path, TakenAt: head.TakenAt}), nil
			}
		}
		switch err := store.Remove(ctx, from, a.Path, a.ID); {
		case errors.Is(err, store.ErrForeign):
			gone.Foreign = append(gone.Foreign, a.Path)
		case err != nil:
			return gone, found, err
		default:
			gone.Incomplete = append(gone.Incomplete, a.Path)
		}
	}
	for i, b := range d.State.Expiring {
		if i == maxRemovedPerEvent {
			break
		}
		switch err := store.Remove(ctx, from, b.Path, b.ID); {
		case errors.Is(err, store.ErrForeign):
			gone.Foreign = append(gone.Foreign, b.Path)
		case err != nil:
			return gone, found, err
		default:
			gone.Backups = append(gone.Backups, b)
		}
	}
	return gone, found, nil
}
