package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
)

var errDead = errors.New("the process is dead")

// dyingLog is the log of a process that dies at one of its appends: before it is sent, or after it
// was stored and before it is acknowledged.
type dyingLog struct {
	aggregate.Log
	remaining int // number of appends that succeed
	stored    bool
}

func (m *dyingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if m.remaining <= 0 {
		if m.remaining == 0 && m.stored {
			if _, err := m.Log.Append(ctx, c); err != nil {
				return eventlog.Receipt{}, err
			}
		}
		m.remaining = -1
		return eventlog.Receipt{}, errDead
	}
	m.remaining--
	return m.Log.Append(ctx, c)
}

func (m *dyingLog) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	if m.remaining < 0 {
		return nil, errDead
	}
	return m.Log.Read(ctx, a, after)
}

// TestDeathAtEveryAppend kills the process before and after each of its appends. The next process must complete the
// move with the same result.
func TestDeathAtEveryAppend(t *testing.T) {
	ends := []struct {
		name  string
		end   mover.Phase
		shape func(*fakeClusters)
	}{
		{"to the end", mover.PhaseSucceeded, func(*fakeClusters) {}},
		{"rolled back", mover.PhaseRolledBack, func(w *fakeClusters) {
			w.fail = map[mover.Step]mover.StepFailed{mover.VerifyCopies: {Message: "it differs", Final: true}}
		}},
	}
	l := logtest.Open(t)
	for _, e := range ends {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stored=%t", e.name, stored), func(t *testing.T) {
				for n := 0; ; n++ {
					id, w := fmt.Sprintf("%s-%t-%d", e.name, stored, n), newFakeClusters(4)
					e.shape(w)
					request(t, l, id)
					err := process("mortal", &dyingLog{Log: l, remaining: n, stored: stored}, w).Drive(t.Context(), id)
					died := errors.Is(err, errDead)
					if err != nil && !died {
						t.Fatalf("append %d: %v", n, err)
					}
					if err := process("heir", l, w).Drive(t.Context(), id); err != nil {
						t.Fatalf("after a crash at append %d: %v", n, err)
					}
					if s := stateOf(t, l, id); s.Phase != e.end {
						t.Errorf("after a crash at append %d the move ended %s", n, s.Phase)
					}
					w.check(t, e.end)
					if !died {
						t.Logf("tried %d appends", n)
						return
					}
				}
			})
		}
	}
}

// TestDeathInEveryStep stops the process before each step and between two objects of each step. The next process must
// complete the move.
func TestDeathInEveryStep(t *testing.T) {
	l := logtest.Open(t)
	for n := 0; ; n++ {
		id, w := fmt.Sprintf("step-%d", n), newFakeClusters(4)
		request(t, l, id)
		left := n
		w.before = func(context.Context, mover.Step) error {
			if left--; left < 0 {
				return errDead
			}
			return nil
		}
		err := process("mortal", l, w).Drive(t.Context(), id)
		w.before = nil
		if err != nil && !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		if err := process("heir", l, w).Drive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.check(t, mover.PhaseSucceeded)
		if !w.isMoved() {
			t.Errorf("after a crash at point %d: not moved", n)
		}
		if err == nil {
			t.Logf("tried %d points", n)
			return
		}
	}
}
