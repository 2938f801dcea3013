package runner

import (
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/eventlog"
)

// Schedules is the view of the schedules in the log. Set its fields before use.
type Schedules struct {
	*aggregate.View[schedule.Event, *schedule.State, v1alpha1.BackupScheduleStatus]
	LogID string
	Now   func() time.Time
}

// NewSchedules returns an empty view with the clock of this machine.
func NewSchedules() *Schedules {
	v := &Schedules{Now: time.Now}
	v.View = aggregate.NewView(aggregate.Kind[schedule.Event, *schedule.State, v1alpha1.BackupScheduleStatus]{
		Name: eventlog.KindBackup, Catalog: schedule.NewCatalog(), New: func() *schedule.State { return new(schedule.State) },
		Ended: (*schedule.State).Finished,
		Open: func(_ string, e *aggregate.Entry[*schedule.State]) bool {
			return e.State.IsConfigured() && !e.State.Finished()
		},
		Due: v.due, Status: v.status,
	})
	return v
}

func (v *Schedules) status(id string, e *aggregate.Entry[*schedule.State]) (status v1alpha1.BackupScheduleStatus, known bool) {
	if !e.State.IsConfigured() && e.Err == nil {
		return status, false
	}
	status = schedule.Status(e.State, v.Now())
	status.ScheduleID, status.LogID, status.LogSequence = id, v.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Message = "stopped: " + e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status, true
}

// maxWait is the longest wait before the clock is read again, because it can be set, and stops
// while the machine is suspended.
const maxWait = time.Minute

func (v *Schedules) due(s *schedule.State) (wait time.Duration, due bool) {
	now := v.Now()
	step := schedule.NextStep(s, now)
	return min(max(step.At.Sub(now), 0), maxWait), !step.At.IsZero()
}
