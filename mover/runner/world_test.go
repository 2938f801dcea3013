package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
)

// fakeClusters simulates what the steps of a move work on: the objects of two management clusters
// and their pause. It outlives the processes that drive the move, and records violations of
// invariants.
type fakeClusters struct {
	mu             sync.Mutex
	items          []mover.Item
	source, target map[object.Ref]bool
	paused, awake  bool // of the source, of the target
	emptying       bool // the first object was deleted at the source
	violations     []string
	steps          []mover.Step

	// before is called before each step and after each object, without the lock; an error ends the process there.
	before func(ctx context.Context, step mover.Step) error
	fail   map[mover.Step]mover.StepFailed
	// unreachable makes Reach fail for each step except preflight.
	unreachable bool
	// unresponsive prevents acknowledgements.
	unresponsive bool
}

func newFakeClusters(n int) *fakeClusters {
	w := &fakeClusters{source: make(map[object.Ref]bool), target: make(map[object.Ref]bool)}
	cluster := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "a"}
	w.items = append(w.items, mover.Item{Ref: cluster, Version: "v1beta2", UID: "uid-a", Cluster: "a"})
	for i := 1; i < n; i++ {
		r := object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: fmt.Sprintf("a-%d", i)}
		w.items = append(w.items, mover.Item{Ref: r, Version: "v1beta2", UID: types.UID("uid-" + r.Name), Level: 1, Cluster: "a"})
	}
	for _, item := range w.items {
		w.source[item.Ref] = true
	}
	return w
}

// Reach fails while the move's clusters cannot be reached.
func (w *fakeClusters) Reach(ctx context.Context, _ *mover.State, step mover.Step) (*mover.StepFailed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unreachable && step != mover.RunPreflight {
		return &mover.StepFailed{Message: "the target does not answer"}, ctx.Err()
	}
	return nil, ctx.Err()
}

// Perform runs one step on the world, object by object. It is idempotent, as runner.Performer requires.
func (w *fakeClusters) Perform(ctx context.Context, s *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error) {
	if err := w.callBefore(ctx, step); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.steps = append(w.steps, step)
	failed, fails := w.fail[step]
	silent := w.unresponsive
	w.mu.Unlock()
	if fails {
		return failed, nil
	}
	cluster := w.items[0]
	switch step {
	case mover.RunPreflight:
		return mover.PreflightDone{Clusters: []string{"a"}}, nil
	case mover.RecordBaseline:
		out := mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline), Roots: []pause.Root{{Ref: cluster.Ref, UID: cluster.UID}}}
		for _, item := range w.items {
			out.Objects[item.Ref] = pause.Baseline{UID: item.UID, Paused: object.False}
		}
		return out, nil
	case mover.PauseSource:
		w.locked(func() { w.paused = true })
		return mover.Paused{}, nil
	case mover.AwaitAcks:
		out := mover.AcksRead{New: make(map[object.Ref]pause.Signal), Stable: true}
		if silent {
			return mover.AcksRead{Stable: true, Pending: []mover.ObjectReason{{Ref: cluster.Ref, Reason: "it does not answer"}}}, nil
		}
		for _, item := range w.items {
			if s.Acks[item.Ref] == "" {
				out.New[item.Ref] = pause.ByCondition
			}
		}
		return out, nil
	case mover.DraftPlan:
		return mover.Drafted{Items: w.items}, nil
	case mover.CreateCopies:
		if err := emit(mover.CreateStarted{}); err != nil {
			return nil, err
		}
		return mover.AllCreated{}, w.each(ctx, step, w.items, func(item mover.Item) error {
			w.require(w.paused, "a copy was made while the source was not paused")
			w.target[item.Ref] = true
			return nil
		}, func(item mover.Item) mover.Outcome {
			return mover.Created{Objects: map[object.Ref]types.UID{item.Ref: "there-" + item.UID}}
		}, emit)
	case mover.VerifyCopies:
		var out mover.VerifyDone
		for _, item := range w.items {
			if !w.target[item.Ref] {
				out.Differences = append(out.Differences, mover.ObjectReason{Ref: item.Ref, Reason: "it is not on the target"})
			}
		}
		return out, nil
	case mover.DeleteSource:
		backwards := slices.Clone(w.items)
		slices.Reverse(backwards)
		return mover.SourceEmptied{}, w.each(ctx, step, backwards, func(item mover.Item) error {
			w.require(w.target[item.Ref], "an object that is not on the target was deleted at the source")
			w.emptying = true
			delete(w.source, item.Ref)
			return nil
		}, func(item mover.Item) mover.Outcome { return mover.Deleted{Objects: []object.Ref{item.Ref}} }, emit)
	case mover.RestorePauses:
		w.locked(func() {
			w.require(len(w.source) == 0, "the target was woken while the source was not empty")
			w.awake = true
		})
		return mover.PausesRestored{}, nil
	case mover.AwaitResume:
		out := mover.ResumeRead{}
		for _, item := range w.items {
			if !s.Resumed[item.Ref] {
				out.New = append(out.New, item.Ref)
			}
		}
		return out, nil
	case mover.ClearTarget:
		return mover.TargetCleared{}, w.each(ctx, step, w.items, func(item mover.Item) error {
			w.require(!w.emptying, "a copy was removed after the source's object was deleted")
			delete(w.target, item.Ref)
			return nil
		}, func(item mover.Item) mover.Outcome { return mover.Removed{Objects: []object.Ref{item.Ref}} }, emit)
	case mover.RestoreSource:
		w.locked(func() {
			w.require(!w.emptying, "the source was unpaused after a deletion")
			w.paused = false
		})
		return mover.RolledBack{}, nil
	default:
		return nil, fmt.Errorf("no such step: %q", step)
	}
}

func (w *fakeClusters) each(ctx context.Context, step mover.Step, items []mover.Item, act func(mover.Item) error, tell func(mover.Item) mover.Outcome, emit transfer.Emit) error {
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.mu.Lock()
		err := act(item)
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if err := emit(tell(item)); err != nil {
			return err
		}
		if err := w.callBefore(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (w *fakeClusters) callBefore(ctx context.Context, step mover.Step) error {
	if w.before == nil {
		return nil
	}
	return w.before(ctx, step)
}

func (w *fakeClusters) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *fakeClusters) require(ok bool, wrong string) {
	if !ok {
		w.violations = append(w.violations, wrong)
	}
}

// isMoved and untouched report whether the world is in one of the two valid final states.
func (w *fakeClusters) isMoved() bool {
	return len(w.source) == 0 && len(w.target) == len(w.items) && w.awake
}

func (w *fakeClusters) isUntouched() bool {
	return len(w.source) == len(w.items) && len(w.target) == 0 && !w.paused
}

func (w *fakeClusters) check(t *testing.T, end mover.Phase) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.violations {
		t.Error(wrong)
	}
	switch {
	case end == mover.PhaseSucceeded && !w.isMoved():
		t.Errorf("Succeeded: source %v, target %v, awake %t", slices.Collect(maps.Keys(w.source)), slices.Collect(maps.Keys(w.target)), w.awake)
	case end == mover.PhaseRolledBack && !w.isUntouched():
		t.Errorf("RolledBack: source %v, target %v, paused %t", slices.Collect(maps.Keys(w.source)), slices.Collect(maps.Keys(w.target)), w.paused)
	}
}

// process returns a runner of a separate process: another incarnation on the same log.
func process(name string, l aggregate.Log, p runner.Performer) *runner.Runner {
	return &runner.Runner{
		Log: l, Incarnation: name, Logger: slog.New(slog.DiscardHandler),
		Performer: func(string) runner.Performer { return p },
	}
}

func testSpec() mover.Spec {
	return mover.Spec{
		Namespace: "fleet", Name: "go", Clusters: []string{"a"}, Target: mover.Target{SecretName: "there", SecretKey: "value"},
		Acknowledge: mover.Duration(time.Minute), Create: mover.Duration(time.Minute), Resume: mover.Duration(time.Minute),
	}
}

func request(t *testing.T, l aggregate.Log, id string) {
	t.Helper()
	if err := process("asker", l, nil).Request(t.Context(), id, "user/test", testSpec()); err != nil {
		t.Fatal(err)
	}
}

// stateOf folds a move from the log, as a new process would.
func stateOf(t *testing.T, l *eventlog.Log, id string) mover.State {
	t.Helper()
	var s mover.State
	for _, r := range commitsOf(t, l, id) {
		if err := mover.NewCatalog().Fold(r, s.Apply); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func commitsOf(t *testing.T, l *eventlog.Log, id string) []eventlog.Record {
	t.Helper()
	records, err := l.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func typesOf(records []eventlog.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, r.Types()...)
	}
	return all
}
