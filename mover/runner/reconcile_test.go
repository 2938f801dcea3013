package runner_test

import (
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// TestReconcile checks moves that are unfinished after a user accepted a log that lost commits. They must not simply
// continue: the clusters may be further, and the move may have been aborted or have ended.
func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		events []mover.Event
		told   runner.ResourceState
		want   mover.Phase
	}{
		"it was to begin":         {nil, runner.ResourceState{Phase: mover.PhasePausing}, mover.PhaseStranded},
		"it was paused":           {[]mover.Event{mover.Paused{}}, runner.ResourceState{Phase: mover.PhaseDeleting}, mover.PhaseStranded},
		"nothing was sent":        {[]mover.Event{mover.Planned{Announced: true}}, runner.ResourceState{Phase: mover.PhaseCreating}, mover.PhaseStranded},
		"it has the plan":         {[]mover.Event{mover.Planned{}}, runner.ResourceState{Phase: mover.PhaseDeleting}, mover.PhaseCreating},
		"its abort is forgotten":  {[]mover.Event{mover.Planned{}}, runner.ResourceState{Phase: mover.PhaseRollingBack}, mover.PhaseStranded},
		"it was deleting":         {[]mover.Event{mover.Verified{}, mover.Deleted{}}, runner.ResourceState{}, mover.PhaseDeleting},
		"it had been rolled back": {[]mover.Event{mover.Paused{}}, runner.ResourceState{Phase: mover.PhaseRolledBack, Ended: true}, mover.PhaseFailed},
		"its resource is gone":    {[]mover.Event{mover.Verified{}}, runner.ResourceState{Ended: true}, mover.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			l := logtest.Open(t)
			request(t, l, "go")
			write(t, l, "go", append([]mover.Event{mover.Claimed{Holder: "one"}}, c.events...)...)
			p := process("operator", l, nil)
			for range 2 {
				if err := p.Reconcile(t.Context(), "go", "user/test", c.told); err != nil {
					t.Fatal(err)
				}
			}
			s := stateOf(t, l, "go")
			if s.Phase != c.want || s.Finished() != c.told.Ended {
				t.Errorf("phase = %s, finished %t", s.Phase, s.Finished())
			}
			if lost := s.Lost != nil; lost != (c.want == mover.PhaseStranded) || lost && mover.Next(&s) != mover.AssessProgress {
				t.Errorf("lost = %t, next step %q", lost, mover.Next(&s))
			}
		})
	}
}

// write appends events to a move, as a process does.
func write(t *testing.T, l *eventlog.Log, id string, events ...mover.Event) {
	t.Helper()
	records := commitsOf(t, l, id)
	commit := eventlog.Commit{ID: "written-" + id, Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, Expected: records[len(records)-1].Seq}
	for _, e := range events {
		ev, err := mover.NewCatalog().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		ev.Time, ev.Actor = time.Now().UTC(), "test"
		commit.Events = append(commit.Events, ev)
	}
	if _, err := l.Append(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
}
