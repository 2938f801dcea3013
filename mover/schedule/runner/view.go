package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover/schedule"
)

// Schedules is the view of the schedules in the log: of all of them, until it is told to forget. It is filled by a projector and read by many.
type Schedules struct {
	// Changed is called after a schedule has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(id string)
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string
	// Log is where Recall reads. It is set before use and not changed.
	Log aggregate.Log

	view *aggregate.View[schedule.Event, *schedule.State]
}

// NewSchedules makes an empty view.
func NewSchedules(changed func(id string)) *Schedules {
	empty := func() *schedule.State { return new(schedule.State) }
	return &Schedules{Changed: changed, view: aggregate.NewView(eventlog.KindBackup, schedule.NewCatalog(), empty)}
}

// Apply folds a commit in; commits about anything else are passed over.
func (v *Schedules) Apply(r eventlog.Record) error {
	mine, err := v.view.Apply(r)
	if mine && v.Changed != nil {
		v.Changed(r.Aggregate.ID)
	}
	return err
}

// Status is the view of one schedule at a time.
func (v *Schedules) Status(id string, now time.Time) (status v1alpha1.BackupScheduleStatus, known bool) {
	v.view.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil || !e.State.Known() && e.Err == nil {
			return
		}
		known, status = true, v.status(id, e, now)
	})
	return status, known
}

func (v *Schedules) status(id string, e *aggregate.Entry[*schedule.State], now time.Time) v1alpha1.BackupScheduleStatus {
	status := schedule.Status(e.State, now)
	status.ScheduleID, status.LogID, status.LogSequence = id, v.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Message = "stopped: " + e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status
}

// Forget drops the schedules whose resource is gone.
func (v *Schedules) Forget() { v.view.Forget((*schedule.State).Finished) }

// Recall reads from the log how a schedule ended that the view may have forgotten. ended is false for one that the log does not know, or
// that has not ended.
func (v *Schedules) Recall(ctx context.Context, id string, now time.Time) (status v1alpha1.BackupScheduleStatus, ended bool, err error) {
	e, err := v.view.Recall(ctx, v.Log, id, (*schedule.State).Finished)
	if err != nil || e == nil {
		return status, false, err
	}
	return v.status(id, e, now), true, nil
}

// Look calls fn with what is known of one schedule, nil if nothing is. fn keeps nothing of it.
func (v *Schedules) Look(id string, fn func(*schedule.State)) {
	v.view.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil {
			fn(nil)
			return
		}
		fn(e.State)
	})
}

// Open are the ids of the schedules of a name that have not ended, in any namespace and of any name where both are empty.
func (v *Schedules) Open(namespace, name string) []string {
	return v.view.Where(func(e *aggregate.Entry[*schedule.State]) bool {
		s := e.State
		return s.Known() && !s.Finished() && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

func (v *Schedules) namespace(id string) (namespace string) {
	v.Look(id, func(s *schedule.State) {
		if s != nil {
			namespace = s.Spec.Namespace
		}
	})
	return namespace
}

// longestWait is after how long the clock is asked again: it can be set, and does not advance while the machine is suspended.
const longestWait = time.Minute

// Due says that Drive has something to do for a schedule, and in which time.
func (v *Schedules) Due(id string, now time.Time) (wait time.Duration, due bool) {
	v.view.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil || e.Err != nil {
			return
		}
		step := schedule.NextStep(e.State, now)
		wait, due = min(max(step.At.Sub(now), 0), longestWait), !step.At.IsZero()
	})
	return wait, due
}

// IDs lists all schedules.
func (v *Schedules) IDs() []string { return v.view.IDs() }

// Snapshot implements projector.Snapshotter.
func (v *Schedules) Snapshot(put func(part string, data []byte) error) error {
	return v.view.Snapshot(put)
}

// Restore implements projector.Snapshotter. Nobody is told of what it restores.
func (v *Schedules) Restore(part string, data []byte) error { return v.view.Restore(part, data) }
