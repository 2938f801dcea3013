package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"scute.dev/eventlog/logtest"
	"scute.dev/internal/earlier"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// TestMovesOfAnEarlierVersion checks that this version completes moves that an earlier version left at each point at
// which a process can crash.
func TestMovesOfAnEarlierVersion(t *testing.T) {
	l := earlier.Open(t, "../..")
	worlds, ends := make(map[string]*world), make(map[string]mover.Phase)
	for name, end := range map[string]mover.Phase{"forward": mover.PhaseSucceeded, "back": mover.PhaseRolledBack} {
		for n := 0; ; n++ {
			id := fmt.Sprintf("fleet/%s-%02d/uid", name, n)
			left := stateOf(t, l, id)
			if left.Finished() {
				break
			}
			worlds[id], ends[id] = worldAt(t, n, end), end
		}
	}
	if len(worlds) < 30 {
		t.Fatalf("the log has only %d unfinished moves", len(worlds))
	}
	r := process("this", l, nil)
	r.Home = mover.Home{Cluster: "earlier", Log: l.ID()}
	r.Performer = func(id string) runner.Performer { return worlds[id] }
	moves, _ := drive(t, l, r, 5)
	for id, w := range worlds {
		eventually(t, id+" at its end", func() bool { s, _ := moves.Status(id); return s.FinishedAt != nil })
		if s, _ := moves.Status(id); s.Phase != ends[id] {
			t.Errorf("phase of %s = %s, want %s", id, s.Phase, ends[id])
		}
		w.check(t, ends[id])
	}
}

// worldAt returns the world of a move whose process died at its n-th point.
func worldAt(t *testing.T, n int, end mover.Phase) *world {
	t.Helper()
	w, l := newWorld(4), logtest.Open(t)
	if end == mover.PhaseRolledBack {
		w.fail = map[mover.Step]mover.StepFailed{mover.VerifyCopies: {Message: "it differs", Final: true}}
	}
	w.before = func(context.Context, mover.Step) error {
		if n--; n < 0 {
			return errDead
		}
		return nil
	}
	request(t, l, "go")
	if err := process("dead", l, w).Drive(t.Context(), "go"); !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	w.before = nil
	return w
}
