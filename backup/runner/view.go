package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/eventlog"
)

// Schedules is the view of the schedules in the log that Forget has not deleted. A projector applies commits; reading is safe for concurrent use.
type Schedules struct {
	*aggregate.View[schedule.Event, *schedule.State]
	// LogID is the ID of the log. It is set before use and not changed.
	LogID string
}

// NewSchedules returns an empty view.
func NewSchedules(changed func(id string)) *Schedules {
	empty := func() *schedule.State { return new(schedule.State) }
	v := &Schedules{View: aggregate.NewView(eventlog.KindBackup, schedule.NewCatalog(), empty, (*schedule.State).Finished)}
	v.Changed = changed
	return v
}

// Status returns the status of a schedule at a time.
func (v *Schedules) Status(id string, now time.Time) (status v1alpha1.BackupScheduleStatus, known bool) {
	v.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil || !e.State.IsConfigured() && e.Err == nil {
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

// Recall reads from the log how a schedule ended that Forget may have deleted. ended is false if the log does not contain it, or if it has not ended.
func (v *Schedules) Recall(ctx context.Context, id string, now time.Time) (status v1alpha1.BackupScheduleStatus, ended bool, err error) {
	e, err := v.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return v.status(id, e, now), true, nil
}

// Open returns the IDs of the schedules with a name that have not ended; of all of them if namespace and name are empty.
func (v *Schedules) Open(namespace, name string) []string {
	return v.Where(func(e *aggregate.Entry[*schedule.State]) bool {
		s := e.State
		return s.IsConfigured() && !s.Finished() && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

func (v *Schedules) namespace(id string) (namespace string) {
	v.ReadState(id, func(s *schedule.State) {
		if s != nil {
			namespace = s.Spec.Namespace
		}
	})
	return namespace
}

// maxWait is the maximum wait before the clock is read again, because it can be set, and stops while the machine is suspended.
const maxWait = time.Minute

// Due reports whether Drive has work for a schedule, and after which wait.
func (v *Schedules) Due(id string, now time.Time) (wait time.Duration, due bool) {
	v.Read(id, func(e *aggregate.Entry[*schedule.State]) {
		if e == nil || e.Err != nil {
			return
		}
		step := schedule.NextStep(e.State, now)
		wait, due = min(max(step.At.Sub(now), 0), maxWait), !step.At.IsZero()
	})
	return wait, due
}
