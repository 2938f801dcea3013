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
	*aggregate.View[schedule.Event, *schedule.State]
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string
}

// NewSchedules makes an empty view.
func NewSchedules(changed func(id string)) *Schedules {
	empty := func() *schedule.State { return new(schedule.State) }
	v := &Schedules{View: aggregate.NewView(eventlog.KindBackup, schedule.NewCatalog(), empty, (*schedule.State).Finished)}
	v.Changed = changed
	return v
}

// Status is the view of one schedule at a time.
func (v *Schedules) Status(id string, now time.Time) (status v1alpha1.BackupScheduleStatus, known bool) {
	v.Read(id, func(e *aggregate.Entry[*schedule.State]) {
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

// Recall reads from the log how a schedule ended that the view may have forgotten. ended is false for one that the log does not know, or
// that has not ended.
func (v *Schedules) Recall(ctx context.Context, id string, now time.Time) (status v1alpha1.BackupScheduleStatus, ended bool, err error) {
	e, err := v.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return v.status(id, e, now), true, nil
}

// Open are the ids of the schedules of a name that have not ended, in any namespace and of any name where both are empty.
func (v *Schedules) Open(namespace, name string) []string {
	return v.Where(func(e *aggregate.Entry[*schedule.State]) bool {
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
	v.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil || e.Err != nil {
			return
		}
		step := schedule.NextStep(e.State, now)
		wait, due = min(max(step.At.Sub(now), 0), longestWait), !step.At.IsZero()
	})
	return wait, due
}
