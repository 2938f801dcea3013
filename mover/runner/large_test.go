package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog/logtest"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
)

// manyRoots is a world with other roots in its baseline.
type manyRoots struct {
	*fakeClusters
	roots []pause.Root
}

func (f *manyRoots) Perform(ctx context.Context, s *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error) {
	o, err := f.fakeClusters.Perform(ctx, s, step, emit)
	if seen, ok := o.(mover.BaselineRead); ok {
		seen.Roots = f.roots
		return seen, err
	}
	return o, err
}

// root returns a Cluster whose name has at least length bytes.
func root(i, length int) pause.Root {
	name := fmt.Sprintf("%s-%d", strings.Repeat("c", length), i)
	return pause.Root{Ref: object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: name}, UID: types.UID("uid-" + name)}
}

func count(list []string, name string) (n int) {
	for _, s := range list {
		if strings.Contains(s, "."+name+".") {
			n++
		}
	}
	return n
}

// TestManyRoots checks that the roots of 10,000 clusters, which need several commits, are recorded again once after a
// crash. After that, each process that resumes the move only adds its claim.
func TestManyRoots(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(2)
	f := &manyRoots{fakeClusters: w}
	for i := range 10_000 {
		f.roots = append(f.roots, root(i, 200))
	}
	errStop := errors.New("stop here")
	w.before = func(_ context.Context, step mover.Step) error {
		if step == mover.PauseSource {
			return errStop
		}
		return nil
	}
	request(t, l, "go")
	dying := &dyingLog{Log: l, remaining: 1 << 30}
	begun := &interferingLog{Log: dying, at: "pause-intended", interfere: func() { dying.remaining = 1 }}
	if err := process("one", begun, f).Drive(t.Context(), "go"); !errors.Is(err, errDead) {
		t.Fatalf("Drive = %v, want errDead", err)
	}
	cut := stateOf(t, l, "go")
	if next := mover.Next(&cut); next != mover.RecordBaseline {
		t.Fatalf("next step after an incomplete list of roots = %q, want TakeBaseline", next)
	}
	for i, name := range []string{"two", "three", "four"} {
		if err := process(name, l, f).Drive(t.Context(), "go"); !errors.Is(err, errStop) {
			t.Fatalf("Drive = %v, want errStop", err)
		}
		types := typesOf(commitsOf(t, l, "go"))
		if baselines, claims := count(types, "baseline-taken"), count(types, "claimed"); baselines != 2 || claims != 2+i {
			t.Errorf("process %s: %d baselines and %d claims are stored, want 2 and %d", name, baselines, claims, 2+i)
		}
	}
	if s := stateOf(t, l, "go"); !slices.Equal(s.Roots, f.roots) {
		t.Errorf("got %d roots, want %d", len(s.Roots), len(f.roots))
	}
}

// TestTooLargeForTheLog checks that nothing is stored of a decision with an event that is too large for a message, and
// that the move fails without retries.
func TestTooLargeForTheLog(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(2)
	f := &manyRoots{fakeClusters: w, roots: []pause.Root{root(0, 1<<20)}}
	request(t, l, "go")
	if err := process("one", l, f).Drive(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	s, types := stateOf(t, l, "go"), typesOf(commitsOf(t, l, "go"))
	if count(types, "baseline-taken") != 0 {
		t.Errorf("a part of the decision is stored: %v", types)
	}
	message, next := mover.Explain(&s)
	if !s.Finished() || !strings.Contains(message, "pause-intended") || !strings.Contains(next, "split the move") {
		t.Errorf("move = %s: message %q, next %q", s.Phase, message, next)
	}
}
