package app

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/trust"
)

// testCluster is a management cluster in which daemons with different logs act.
type testCluster struct {
	kube   client.WithWatch
	leases *fake.Clientset
	// alone means that daemons run without leader election.
	alone bool
}

func newInstalled(t *testing.T) *testCluster {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	open := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "open"}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-here"}}
	return &testCluster{
		kube:   ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(open, ns).WithStatusSubresource(open, &v1alpha1.Pause{}).Build(),
		leases: fake.NewClientset(),
	}
}

// runGate runs a daemon's gate on the log of a folder, and returns what is wrong with the log. It checks that the Move
// reports it.
func (w *testCluster) runGate(t *testing.T, dir, holder string, between func(*eventlog.Log)) *trust.Fault {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	view := trust.NewView()
	p := aggregate.NewProjector(log, "test", view, slog.New(slog.DiscardHandler))
	go func() { _ = p.Run(ctx) }()
	<-p.CaughtUp()
	m := &watermarkLog{Log: log}
	l := &lease{client: w.leases.CoordinationV1().Leases(trust.LeaseNamespace), holder: holder, logID: log.ID(), installation: "a", head: m.head}
	m.raiseWatermark = l.raiseWatermark
	if _, _, err := l.Get(ctx); err != nil {
		err = l.Create(ctx, record(holder))
		if err != nil {
			t.Fatal(err)
		}
	} else if err := l.Update(ctx, record(holder)); err != nil {
		t.Fatal(err)
	}
	g := &gate{
		log: log, view: view, caughtUp: p.CaughtUp(), watermarked: m, lease: l, reader: w.kube, actor: "daemon/" + holder, logger: slog.New(slog.DiscardHandler),
		statuses: newSurvey(w.kube, log.ID(), true),
		report:   &report{client: w.kube, recorder: events.NewFakeRecorder(9)}, open: make(chan struct{}),
	}
	if w.alone {
		g.lease = nil
	}
	fault, err := g.check(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.announce(ctx, fault); err != nil {
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
			t.Errorf("conditions of the Move = %v", c)
		}
		if between != nil {
			between(log)
		}
	}
	return fault
}

// TestGate checks how the gate judges a log that went back, another log, and a reconciled log.
func TestGate(t *testing.T) {
	w := newInstalled(t)
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	if f := w.runGate(t, dir, "one", nil); f != nil {
		t.Fatalf("first start: %s", f)
	}
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if f := w.runGate(t, dir, "one", func(log *eventlog.Log) {
		c := eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: "1",
			Events: []eventlog.Event{{Type: "dev.scute.move.requested.v1", Time: time.Now(), Data: []byte("{}")}},
		}
		if _, err := log.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}); f != nil {
		t.Fatalf("same log again: %s", f)
	}
	if f := w.runGate(t, dir, "one", nil); f != nil { // the mark is raised to its head
		t.Fatalf("third start: %s", f)
	}
	last := uint64(1) // the sequence of the log's own aggregate
	reconcile := func(log *eventlog.Log) {
		c, err := trust.Commit(trust.Reconciled{Cluster: "uid-here", Watermark: trust.Watermark{LogID: log.ID(), Sequence: 2}}, "user/test", last, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.runGate(t, t.TempDir(), "two", nil); f == nil || f.Reason != trust.Replaced {
		t.Errorf("another log: got %v, want Replaced", f)
	}
	if f := w.runGate(t, old, "one", reconcile); f == nil || f.Reason != trust.WentBack {
		t.Errorf("older copy: got %v, want WentBack", f)
	}
	if f := w.runGate(t, old, "one", nil); f != nil {
		t.Errorf("reconciled copy: %s", f)
	}
	// The longer copy returns: it is as long as the reconciled one, but has other commits.
	for range 2 {
		if f := w.runGate(t, dir, "two", nil); f == nil || f.Reason != trust.WentBack {
			t.Errorf("longer copy: got %v, want WentBack", f)
		}
		if f := w.runGate(t, old, "one", nil); f != nil {
			t.Errorf("reconciled copy again: %s", f)
		}
	}
	if f := w.runGate(t, dir, "two", reconcile); f == nil || f.Reason != trust.WentBack {
		t.Errorf("longer copy before reconciling: got %v, want WentBack", f)
	}
	if f := w.runGate(t, dir, "two", nil); f != nil {
		t.Errorf("longer copy after reconciling: %s", f)
	}
	if f := w.runGate(t, old, "one", nil); f == nil || f.Reason != trust.WentBack {
		t.Errorf("first copy after reconciling the other: got %v, want WentBack", f)
	}
}

// TestGateByStatuses checks that an older copy of the log is detected by the log sequences in the resources' statuses
// if the Lease was deleted or leader election is disabled, until an operator accepts it.
func TestGateByStatuses(t *testing.T) {
	for name, alone := range map[string]bool{"the Lease was deleted": false, "without leader election": true} {
		t.Run(name, func(t *testing.T) {
			w := newInstalled(t)
			w.alone = alone
			dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
			if f := w.runGate(t, dir, "one", func(log *eventlog.Log) { w.setStatusSequence(t, log, 1) }); f != nil {
				t.Fatalf("first start: %s", f)
			}
			if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if f := w.runGate(t, dir, "one", func(log *eventlog.Log) { w.setStatusSequence(t, log, 5) }); f != nil {
				t.Fatalf("second start: %s", f)
			}
			forget := func() {
				err := w.leases.CoordinationV1().Leases(trust.LeaseNamespace).Delete(t.Context(), trust.LeaseName, metav1.DeleteOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
			forget()
			if f := w.runGate(t, t.TempDir(), "two", nil); f != nil {
				t.Fatalf("another log without a Lease: %s", f)
			}
			forget()
			accept := func(log *eventlog.Log) {
				c, err := trust.Commit(trust.Reconciled{Cluster: "uid-here", Statuses: trust.Watermark{LogID: log.ID(), Sequence: 5}}, "user/test", 1, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := log.Append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if f := w.runGate(t, old, "one", accept); f == nil || f.Reason != trust.WentBack {
				t.Fatalf("older copy: got %v, want WentBack", f)
			}
			if f := w.runGate(t, old, "one", nil); f != nil {
				t.Errorf("accepted copy: %s", f)
			}
		})
	}
}

// setStatusSequence writes the sequence of the log to the status of the Move.
func (w *testCluster) setStatusSequence(t *testing.T, log *eventlog.Log, seq int64) {
	t.Helper()
	var move v1alpha1.Move
	if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "open"}, &move); err != nil {
		t.Fatal(err)
	}
	move.Status.LogID, move.Status.LogSequence = log.ID(), seq
	if err := w.kube.Status().Update(t.Context(), &move); err != nil {
		t.Fatal(err)
	}
}

// TestSurvey checks that the statuses are read again only after a while, and that a failed read is not cached.
func TestSurvey(t *testing.T) {
	w, now := newInstalled(t), time.Now()
	failing, broken := 0, true
	reader := interceptor.NewClient(w.kube, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if broken {
			failing++
			return errors.New("not now")
		}
		return c.List(ctx, list, opts...)
	}})
	s := newSurvey(reader, "aaaa", true)
	if _, err := s.watermark(t.Context(), now); err == nil {
		t.Error("mark succeeded although a list failed")
	}
	broken = false
	is := func(want uint64, now time.Time) {
		t.Helper()
		if got, err := s.watermark(t.Context(), now); err != nil || got.Sequence != want {
			t.Errorf("mark = %v, want %d; error %v", got, want, err)
		}
	}
	is(0, now)
	move := &v1alpha1.Move{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "open"}, move); err != nil {
		t.Fatal(err)
	}
	move.Status.LogID, move.Status.LogSequence = "aaaa", 7
	if err := w.kube.Status().Update(t.Context(), move); err != nil {
		t.Fatal(err)
	}
	is(0, now.Add(surveyAge-1))
	is(7, now.Add(surveyAge))
	pause := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "held"}}
	pause.Spec.Clusters = []string{"prod"}
	if err := w.kube.Create(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	pause.Status.LogID, pause.Status.LogSequence = "aaaa", 9
	if err := w.kube.Status().Update(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	is(9, now.Add(2*surveyAge))
	if failing != 1 {
		t.Errorf("%d lists failed, want 1", failing)
	}
}

// TestOthersAreToldOnce checks that another active daemon is reported once.
func TestOthersAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*storeCheckInterval)
		defer cancel()
		told := 0
		if err := watchOthers(ctx, func() error { return eventlog.ErrConflict }, storeCheckInterval, func(error) { told++ }); err != nil || told != 1 {
			t.Errorf("reported %d times, %v", told, err)
		}
	})
}
