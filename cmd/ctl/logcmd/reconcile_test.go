package logcmd

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/controllers/move"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// TestReconcileOpenMoves: a log that went back takes moves for unfinished that are over, and knows too little of the others. None
// of them is simply driven on.
func TestReconcileOpenMoves(t *testing.T) {
	l := logtest.Open(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientBuilder().WithScheme(scheme)
	r := &runner.Runner{Log: l, Logger: slog.New(slog.DiscardHandler)}
	over := metav1.NewTime(time.Now())
	want := make(map[string]string)
	for name, c := range map[string]struct {
		status v1alpha1.MoveStatus
		gone   bool
		alone  bool // the log has nothing of it
		then   string
	}{
		"begun":       {status: v1alpha1.MoveStatus{Phase: mover.PhaseRollingBack}, then: thenLost},
		"unpublished": {then: thenLost},
		"aborted":     {status: v1alpha1.MoveStatus{Phase: mover.PhaseRolledBack, FinishedAt: &over}, then: thenEnds},
		"deleted":     {gone: true, then: thenEnds},
		"forgotten":   {status: v1alpha1.MoveStatus{Phase: mover.PhaseDeleting}, alone: true, then: thenLost},
	} {
		m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name + "-uid")}, Status: c.status}
		id := move.ID(m)
		if name != "unpublished" {
			m.Status.MoveID = id
		}
		if !c.gone {
			client = client.WithObjects(m)
		}
		if !c.alone {
			if err := r.Request(t.Context(), id, "user/test", move.Spec(m)); err != nil {
				t.Fatal(err)
			}
		}
		want["move/"+id] = c.then
	}
	cluster := &connect.Cluster{Client: client.Build()}
	look := func() (*openings, int) {
		open := newOpenings()
		if _, err := l.Replay(t.Context(), 0, open.apply); err != nil {
			t.Fatal(err)
		}
		outcomes, err := open.outcomes(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			if o.Then != want[o.Name] {
				t.Errorf("%s %s, want %s", o.Name, o.Then, want[o.Name])
			}
		}
		return open, len(outcomes)
	}
	open, n := look()
	if n != len(want) {
		t.Errorf("%d are shown, want %d", n, len(want))
	}
	if err := open.reconcile(t.Context(), r, "user/test"); err != nil {
		t.Fatal(err)
	}
	open, n = look()
	if n != 3 {
		t.Errorf("%d are open after it was recorded, want the three that are stranded", n)
	}
	for _, id := range open.openMoves() {
		if status, _ := open.moves.Status(id); !status.Stranded {
			t.Errorf("%s is %s", id, status.Phase)
		}
	}
}
