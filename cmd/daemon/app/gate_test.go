package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/projector"
)

// installed is a management cluster that daemons with one log or another act on.
type installed struct {
	kube   client.WithWatch
	leases *fake.Clientset
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	open := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "open"}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-here"}}
	return &installed{
		kube:   ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(open, ns).WithStatusSubresource(open).Build(),
		leases: fake.NewClientset(),
	}
}

// judge runs a daemon's gate on the log of a folder, and says what is wrong with the log, and whether the Move says it.
func (w *installed) judge(t *testing.T, dir, holder string, between func(*eventlog.Log)) *trust.Fault {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, err := eventlog.OpenEmbedded(ctx, eventlog.EmbeddedOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	view := trust.NewView()
	p := projector.New(log, func() *trust.View { return view }, projector.Options{Name: "test"})
	go func() { _ = p.Run(ctx) }()
	<-p.CaughtUp()
	m := &marked{Log: log}
	l := &lease{client: w.leases.CoordinationV1().Leases(trust.LeaseNamespace), holder: holder, logID: log.ID(), installation: "a", head: m.head}
	m.raise = l.raise
	if _, _, err := l.Get(ctx); err != nil {
		err = l.Create(ctx, record(holder))
		if err != nil {
			t.Fatal(err)
		}
	} else if err := l.Update(ctx, record(holder)); err != nil {
		t.Fatal(err)
	}
	g := &gate{
		log: log, view: view, caughtUp: p.CaughtUp(), marked: m, lease: l, reader: w.kube, actor: "daemon/" + holder, logger: slog.New(slog.DiscardHandler),
		report: &report{client: w.kube, recorder: events.NewFakeRecorder(9)}, open: make(chan struct{}),
	}
	fault, err := g.judge(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.tell(ctx, fault); err != nil {
		t.Fatal(err)
	}
	if fault == nil && between != nil {
		between(log)
		if err := l.Update(ctx, record(holder)); err != nil {
			t.Fatal(err)
		}
	}
	if fault != nil {
		var move v1alpha1.Move
		if err := w.kube.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "open"}, &move); err != nil {
			t.Fatal(err)
		}
		if c := move.Status.Conditions; len(c) != 3 || c[2].Reason != string(fault.Reason) || c[2].Status != metav1.ConditionTrue {
			t.Errorf("the Move says %v", c)
		}
		if between != nil {
			between(log)
		}
	}
	return fault
}

// TestGate: a log that went back, another log, and one that was reconciled.
func TestGate(t *testing.T) {
	w := newInstalled(t)
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	if f := w.judge(t, dir, "one", nil); f != nil {
		t.Fatalf("a first start: %s", f)
	}
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if f := w.judge(t, dir, "one", func(log *eventlog.Log) {
		c := eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: "1",
			Events: []eventlog.Event{{Type: "dev.scute.move.requested.v1", Time: time.Now(), Data: []byte("{}")}},
		}
		if _, err := log.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}); f != nil {
		t.Fatalf("the same log again: %s", f)
	}
	if f := w.judge(t, dir, "one", nil); f != nil { // the mark is raised to its head
		t.Fatalf("once more: %s", f)
	}
	reconcile := func(log *eventlog.Log) {
		c, err := trust.Commit(trust.Reconciled{Cluster: "uid-here", Mark: trust.Mark{LogID: log.ID(), Sequence: 2}}, "user/test", 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.judge(t, t.TempDir(), "two", nil); f == nil || f.Reason != trust.Replaced {
		t.Errorf("another log: %v", f)
	}
	if f := w.judge(t, old, "one", reconcile); f == nil || f.Reason != trust.WentBack {
		t.Errorf("an older copy: %v", f)
	}
	if f := w.judge(t, old, "one", nil); f != nil {
		t.Errorf("after it was reconciled: %s", f)
	}
}

// TestOthersAreToldOnce, and again when it is somebody else.
func TestOthersAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*minded)
		defer cancel()
		told := 0
		if err := watchOthers(ctx, func() error { return eventlog.ErrConflict }, minded, func(error) { told++ }); err != nil || told != 1 {
			t.Errorf("told %d times, %v", told, err)
		}
	})
}
