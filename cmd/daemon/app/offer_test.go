package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

// rejectConflicts rejects updates of a Lease that has changed since it was read, as an API server does.
func rejectConflicts(set *fake.Clientset) {
	var mu sync.Mutex
	writes := 0
	set.PrependReactor("*", "leases", func(a k8stesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		write, ok := a.(k8stesting.UpdateAction) // a create action has the same methods
		if !ok {
			return false, nil, nil
		}
		next := write.GetObject().(*coordinationv1.Lease)
		if a.GetVerb() == "update" {
			found, err := set.Tracker().Get(a.GetResource(), a.GetNamespace(), next.Name)
			if err != nil {
				return true, nil, err
			}
			if found.(*coordinationv1.Lease).ResourceVersion != next.ResourceVersion {
				return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), next.Name, nil)
			}
		}
		writes++
		next.ResourceVersion = fmt.Sprint(writes)
		return false, nil, nil
	})
}

// TestOfferOfAnEarlierHolder checks that an offer of an earlier holder, which a version without offers leaves in the
// Lease that it acquires, is ignored.
func TestOfferOfAnEarlierHolder(t *testing.T) {
	clients := fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace)
	none := func() uint64 { return 0 }
	older := &lease{client: clients, holder: "older", logID: "aaaa", head: none}
	if err := older.Create(t.Context(), record("older")); err != nil {
		t.Fatal(err)
	}
	two := &lease{client: clients, holder: "two", logID: "aaaa", head: none}
	for _, c := range []struct{ offered, wanted string }{{"earlier", ""}, {"older", "older"}} {
		older.last.Annotations[trust.OfferedAnnotation] = c.offered
		if _, err := clients.Update(t.Context(), older.last, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := two.Get(t.Context()); err != nil || two.last.Annotations[trust.RequestedAnnotation] != c.wanted {
			t.Errorf("offered by %s: wanted annotation = %q, want %q; error %v", c.offered, two.last.Annotations[trust.RequestedAnnotation], c.wanted, err)
		}
	}
}

// replica is a process that takes part in leader election.
type replica struct {
	*lease
	// disconnect disconnects the replica from the log, or reconnects it.
	disconnect func(bool)
	isLeader   func() bool
}

// runReplica runs a replica until its context ends or it loses the Lease.
func runReplica(t *testing.T, set *fake.Clientset, holder, logID string) *replica {
	t.Helper()
	var mu sync.Mutex
	cut := false
	l := &lease{
		client: set.CoordinationV1().Leases(trust.LeaseNamespace), holder: holder, logID: logID, head: func() uint64 { return 0 }, tenure: &tenure{},
		health: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if cut {
				return eventlog.ErrUnavailable
			}
			return nil
		},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(t.Context())
	go func() { _ = l.monitorHealth(t.Context(), slog.New(slog.DiscardHandler)) }()
	return &replica{lease: l, isLeader: elector.IsLeader, disconnect: func(away bool) {
		mu.Lock()
		defer mu.Unlock()
		cut = away
	}}
}

// TestCopyOfTheFolder checks that a process with a copy of a log's folder, such as a snapshot of its volume, does not
// lead at the same time as the original. A process that is restarted in its folder does not wait for its own Lease,
// even if another start failed in between.
func TestCopyOfTheFolder(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	open := func(dir string) *home {
		h, err := openLog(t.Context(), logOptions{Dir: dir}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.log.Close(); err != nil {
			t.Fatal(err)
		}
		return h
	}
	_ = open(dir)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	first, second := open(dir), open(copied)
	_ = open(dir) // it ended before it could acquire the Lease
	third := open(dir)
	synctest.Test(t, func(t *testing.T) {
		set := fake.NewClientset()
		rejectConflicts(set)
		one := runReplica(t, set, first.holder, "aaaa")
		time.Sleep(time.Second)
		two := runReplica(t, set, second.holder, "aaaa")
		two.mu.Lock()
		two.previousHolders = second.previousHolders
		two.mu.Unlock()
		time.Sleep(10 * time.Second)
		if !one.isLeader() || two.isLeader() || two.tenure.check() == nil {
			t.Errorf("leading: original %t, copy %t", one.isLeader(), two.isLeader())
		}
		again := &lease{client: one.client, holder: third.holder, previousHolders: third.previousHolders, logID: "aaaa", head: one.head}
		if r, _, err := again.Get(t.Context()); err != nil || r.HolderIdentity != "" {
			t.Errorf("the restarted process waits for %q; error %v", r.HolderIdentity, err)
		}
	})
}

// TestHolderWithoutTheLog checks that a leader that cannot reach the log hands the Lease over to a process that can,
// after it has not acted for a while. Otherwise it keeps the Lease and acts.
func TestHolderWithoutTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		log  string        // the log of the other process
		both bool          // the other process cannot reach the log either
		away time.Duration // how long the log is unreachable
		want string
	}{
		"another one reaches it":           {log: "aaaa", away: time.Hour, want: "two"},
		"it is back soon":                  {log: "aaaa", away: offerAfter / 2, want: "one"},
		"nobody reaches it":                {log: "aaaa", both: true, away: time.Hour, want: "one"},
		"the other one is of another log":  {log: "bbbb", away: time.Hour, want: "one"},
		"nobody reaches it, and then both": {log: "aaaa", both: true, away: 2 * time.Minute, want: "either"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := fake.NewClientset()
				rejectConflicts(set)
				one := runReplica(t, set, "one", "aaaa")
				synctest.Wait()
				two := runReplica(t, set, "two", c.log)
				time.Sleep(30 * time.Second)
				if !one.isLeader() || two.isLeader() || one.tenure.check() != nil {
					t.Fatal("the first process does not lead")
				}
				began := time.Now()
				one.disconnect(true)
				two.disconnect(c.both)
				idle := time.Time{}
				for ; time.Since(began) < 4*time.Minute; time.Sleep(500 * time.Millisecond) {
					if time.Since(began) > c.away {
						one.disconnect(false)
						two.disconnect(false)
					}
					switch acts := one.tenure.check() == nil; {
					case acts:
						idle = time.Time{}
					case idle.IsZero():
						idle = time.Now()
					}
					if two.tenure.check() == nil && (idle.IsZero() || time.Since(idle) < leaseTimeout) {
						t.Fatal("the second process acts while requests of the first may still arrive")
					}
					if c.want == "one" && !idle.IsZero() {
						t.Fatal("the first process does not act although no other can take over")
					}
				}
				if one.isLeader() == two.isLeader() || c.want != "either" && one.isLeader() != (c.want == "one") {
					t.Errorf("leading: one %t, two %t, want %s", one.isLeader(), two.isLeader(), c.want)
				}
				if acts, want := one.tenure.check() == nil, one.isLeader(); acts != want {
					t.Errorf("the first process acts: %t, want %t", acts, want)
				}
				now, err := one.client.Get(t.Context(), trust.LeaseName, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				_, offered := now.Annotations[trust.OfferedAnnotation]
				if want := c.want == "one" && c.away == time.Hour; offered != want {
					t.Errorf("the Lease is offered: %t, want %t", offered, want)
				}
			})
		})
	}
}

// TestOfferWhileTheLogIsJudged checks that reading the Lease to judge the log does not miss another process's request
// for the Lease, and that a process does not recreate the Lease if it was deleted after it was handed over.
func TestOfferWhileTheLogIsJudged(t *testing.T) {
	clients := fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace)
	one := &lease{client: clients, holder: "one", logID: "aaaa", head: func() uint64 { return 0 }, tenure: &tenure{}, unreachableSince: time.Now().Add(-2 * offerAfter)}
	two := &lease{client: clients, holder: "two", logID: "aaaa", head: one.head}
	if err := one.Create(t.Context(), record("one")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := two.Get(t.Context()); err != nil || two.last.Annotations[trust.RequestedAnnotation] != "one" {
		t.Fatalf("annotations = %v, error %v", two.last.Annotations, err)
	}
	if _, _, err := one.watermark(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := one.Update(t.Context(), record("one")); err == nil || one.tenure.check() == nil {
		t.Errorf("the process kept the Lease that it had offered: %v", err)
	}
	if err := clients.Delete(t.Context(), trust.LeaseName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := one.Create(t.Context(), record("one")); err == nil {
		t.Error("the process created the Lease again")
	}
}

// TestMarkOfALostLease checks that a process that finds the Lease lost when it raises the mark or judges its log does
// not take the Lease from the new holder at the next renewal.
func TestMarkOfALostLease(t *testing.T) {
	for name, learn := range map[string]func(context.Context, *lease) error{
		"raised": func(ctx context.Context, l *lease) error { return l.raiseWatermark(ctx, 9) },
		"judged": func(ctx context.Context, l *lease) error { _, _, err := l.watermark(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := fake.NewClientset()
				rejectConflicts(set)
				one := runReplica(t, set, "one", "aaaa")
				time.Sleep(5 * time.Second)
				if err := one.setWatermark(t.Context(), 5, ""); err != nil || !one.isLeader() {
					t.Fatalf("the first process leads: %t; error %v", one.isLeader(), err)
				}
				if err := one.client.Delete(t.Context(), trust.LeaseName, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				two := runReplica(t, set, "two", "aaaa")
				synctest.Wait()
				_ = learn(t.Context(), one.lease)
				time.Sleep(5 * time.Second)
				if one.isLeader() || one.tenure.check() == nil || !two.isLeader() {
					t.Errorf("leading: one %t, two %t", one.isLeader(), two.isLeader())
				}
			})
		})
	}
}
