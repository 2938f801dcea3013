package app

import (
	"scute.dev/aggregate"
	schedules "scute.dev/backup/runner"
	"scute.dev/controllers/resource"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/internal/trust"
	moves "scute.dev/mover/runner"
	pauses "scute.dev/pause/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// views contains the views of all domains. One replay of the log fills them all. If a view cannot
// read a commit, only the aggregate of this commit is set aside. Every sweepEvery-th commit deletes
// old finished objects from the views; they can then only be read from the log. This depends only
// on the commits, so every replay produces the same views.
type views struct {
	Moves        *moves.Moves
	Runs         *runs.Runs
	Remediations *remediations.Remediations
	Pauses       *pauses.Pauses
	Schedules    *schedules.Schedules
	Usage        *usage
	Trust        *trust.View

	kinds      map[eventlog.Kind]aggregate.Applier
	keptBytes  int
	sweepEvery uint64
}

func newViews(limits usageLimits) *views {
	v := &views{
		Moves: moves.NewMoves(), Runs: runs.NewRuns(), Remediations: remediations.NewRemediations(),
		Pauses: pauses.NewPauses(), Schedules: schedules.NewSchedules(), Usage: newUsage(limits), Trust: trust.NewView(),
		keptBytes: keptBytes, sweepEvery: sweepEvery,
	}
	v.kinds = map[eventlog.Kind]aggregate.Applier{
		eventlog.KindMove: v.Moves, eventlog.KindRun: v.Runs, eventlog.KindRemediation: v.Remediations,
		eventlog.KindPause: v.Pauses, eventlog.KindBackup: v.Schedules, eventlog.KindDaemon: v.Trust,
	}
	return v
}

// Finished objects are kept for callers that need them soon, such as the controller that writes
// their final status. For each kind, keptBytes limits the size of their commits in the log. The
// limit is enforced at every sweepEvery-th commit.
const (
	keptBytes  = 16 << 20
	sweepEvery = 1024
)

func (v *views) setLog(log aggregate.Log, id string) {
	v.Moves.Log, v.Runs.Log, v.Pauses.Log, v.Schedules.Log = log, log, log, log
	v.Runs.LogID, v.Pauses.LogID, v.Schedules.LogID, v.Remediations.LogID = id, id, id, id
}

// Apply implements aggregate.Applier.
func (v *views) Apply(r eventlog.Record) (err error) {
	v.Usage.Apply(r)
	if view := v.kinds[r.Aggregate.Kind]; view != nil {
		err = view.Apply(r)
	}
	if r.Seq%v.sweepEvery == 0 {
		v.forget(v.keptBytes)
		v.Remediations.Forget(r.Stored)
	}
	return err
}

// forget deletes finished objects from the views. Of each kind, it keeps the latest ones, as long
// as their commits in the log have no more than most bytes.
func (v *views) forget(most int) {
	v.Moves.Forget(most)
	v.Runs.Forget(most)
	v.Pauses.Forget(most)
	v.Schedules.Forget(most)
}

// driven is a kind of objects in the log that the daemon drives, and whose resources it reconciles.
type driven struct {
	supervisor *supervise.Supervisor
	changes    resource.Changes[string]
}

func (k *driven) changed(id string, seq uint64) {
	k.supervisor.Changed(id, seq)
	k.changes.Add(id)
}

// enqueue enqueues each open object, so that the controller checks that its resource still exists.
// If a user removes a finalizer by hand, nothing else triggers that check.
func (k *driven) enqueue(open func(namespace, name string) []string) {
	for _, id := range open("", "") {
		k.changes.Add(id)
	}
}

// setSupervisor sets the supervisor of the kind. It returns the function that the view must call
// for each change of an object.
func (k *driven) setSupervisor(s *supervise.Supervisor) (changed func(id string, seq uint64)) {
	k.supervisor, s.Drivers.Changed = s, k.changes.Add
	return k.changed
}
