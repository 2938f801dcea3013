package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
	"scute.dev/test/harness"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// replicaClusters is the number of clusters with an unhealthy worker, each in its own namespace. One may be replaced at
// a time.
const replicaClusters = 3

// TestReplicasRemediate kills the leader of several daemons during a replacement, stops the next leader during another
// one, and continues it after a third has taken over. At no time are more machines replaced than the limit allows. Each
// unhealthy machine is replaced once, and no other machine is lost.
func TestReplicasRemediate(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	c, err := shared.blue.Client()
	harness.Must(t, err)
	limits := &v1alpha1.RepairLimits{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName},
		Spec:       v1alpha1.RepairLimitsSpec{PauseRequests: []string{"until all are unhealthy"}, AtOnce: 1},
	}
	harness.Must(t, c.Create(ctx, limits))
	cleanup(t, func(ctx context.Context) error { return client.IgnoreNotFound(c.Delete(ctx, limits)) })
	n := startNATS(t)
	harness.Must(t, shared.blue.ForgetLog(ctx))
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: n.url(), TLS: eventlog.TLSFiles{CA: n.cert, Cert: n.cert, Key: n.key}, Create: true})
	harness.Must(t, err)
	defer log.Close()
	first := n.replica(t, "")
	waitLeader(ctx, t)
	second := n.replica(t, "")
	w := watchWorkers(ctx, t, replicaFleet(ctx, t, c))
	w.await(ctx, t, "all victims are marked", func() bool { return len(w.marked) == replicaClusters })

	patch := client.MergeFrom(limits.DeepCopy())
	limits.Spec.PauseRequests = nil
	harness.Must(t, c.Patch(ctx, limits, patch))
	w.await(ctx, t, "a replacement is in progress", func() bool { return w.begun == 1 })
	harness.Must(t, first.Kill(ctx))
	w.await(ctx, t, "the second daemon is in the middle of the next one", func() bool { return w.begun == 2 })
	third := n.replica(t, "")
	harness.Must(t, syscall.Kill(second.PID(), syscall.SIGSTOP))
	w.await(ctx, t, "the third daemon is in the middle of the last one", func() bool { return w.begun == 3 })
	harness.Must(t, syscall.Kill(second.PID(), syscall.SIGCONT))
	select {
	case <-second.Done(): // it lost the lease and exits
	case <-ctx.Done():
		t.Fatalf("a daemon that lost the lease still runs: see %s", second.Log())
	}
	w.await(ctx, t, "all victims are gone", func() bool { return w.gone == replicaClusters })
	harness.Must(t, third.Exited())
	for i := range replicaClusters {
		harness.Must(t, shared.blue.Side.WaitAvailable(ctx, replicaNamespace(i), "c"))
	}
	w.check(t)
	checkReplicaLog(ctx, t, log)
}

func replicaNamespace(i int) string { return fmt.Sprintf("replicas-%d", i) }

// replicaFleet creates the clusters with a policy for each, breaks the node of one worker of each, and returns the
// machines.
func replicaFleet(ctx context.Context, t *testing.T, c client.Client) *workers {
	t.Helper()
	w := &workers{known: make(map[types.UID]bool), victims: make(map[types.UID]string), marked: make(map[types.UID]bool), scheduled: make(map[types.UID]bool), changed: make(chan struct{}, 1)}
	made := make([]*testbed.Workload, replicaClusters)
	for i := range made {
		var err error
		made[i], err = shared.blue.Side.CreateCluster(ctx, testbed.Cluster{Namespace: replicaNamespace(i), Name: "c", Workers: 2})
		harness.Must(t, err)
	}
	now := v1alpha1.Duration{Duration: time.Second}
	for i, workload := range made {
		harness.Must(t, shared.blue.Side.WaitAvailable(ctx, replicaNamespace(i), "c"))
		machines := &clusterv1.MachineList{}
		harness.Must(t, shared.blue.Side.Client().List(ctx, machines, client.InNamespace(replicaNamespace(i))))
		var victim *clusterv1.Machine
		for j := range machines.Items {
			m := &machines.Items[j]
			w.known[m.UID] = true
			if _, plane := m.Labels[clusterv1.MachineControlPlaneLabel]; !plane {
				victim = m
			}
		}
		w.victims[victim.UID] = victim.Name
		harness.Must(t, workload.BreakNode(ctx, victim.Status.NodeRef.Name, corev1.ConditionUnknown))
		p := &v1alpha1.RepairPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: replicaNamespace(i), Name: "repair"},
			Spec: v1alpha1.RepairPolicySpec{
				ControlPlanes: new(bool), Workers: true,
				Checks: v1alpha1.RepairChecks{UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{{Type: "Ready", Status: "Unknown", Timeout: now}}},
			},
		}
		harness.Must(t, c.Create(ctx, p))
		cleanup(t, func(ctx context.Context) error { return client.IgnoreNotFound(c.Delete(ctx, p)) })
	}
	return w
}

// workers has the state of the clusters' machines as seen by a watch.
type workers struct {
	mu        sync.Mutex
	known     map[types.UID]bool   // the machines that existed at the beginning
	victims   map[types.UID]string // names of the unhealthy machines
	marked    map[types.UID]bool
	scheduled map[types.UID]bool // victims with a replacement in progress
	made      int
	begun     int // replacements that were started
	gone      int // deleted victims
	atOnce    int // highest number scheduled at the same time
	wrong     []error
	changed   chan struct{}
}

func watchWorkers(ctx context.Context, t *testing.T, w *workers) *workers {
	t.Helper()
	scheme, err := stack.NewScheme()
	harness.Must(t, err)
	c, err := client.NewWithWatch(shared.blue.Side.Config(), client.Options{Scheme: scheme})
	harness.Must(t, err)
	changes, err := c.Watch(ctx, &clusterv1.MachineList{}) // one watch for all, so that changes arrive in order
	harness.Must(t, err)
	t.Cleanup(changes.Stop)
	go func() {
		for e := range changes.ResultChan() {
			if m, ok := e.Object.(*clusterv1.Machine); ok {
				w.take(m, e.Type)
			}
		}
	}()
	return w
}

func (w *workers) take(m *clusterv1.Machine, change watch.EventType) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ours := false
	for i := range replicaClusters {
		ours = ours || m.Namespace == replicaNamespace(i)
	}
	if !ours {
		return
	}
	_, victim := w.victims[m.UID]
	switch {
	case !w.known[m.UID]:
		w.known[m.UID] = true
		w.made++
	case victim && change == watch.Deleted:
		w.gone++
	case !victim && (change == watch.Deleted || m.DeletionTimestamp != nil):
		w.wrong = append(w.wrong, fmt.Errorf("machine %s/%s is deleted, and is healthy", m.Namespace, m.Name))
	}
	var mark v1alpha1.UnhealthyMark
	if value := m.Annotations[v1alpha1.UnhealthyAnnotation]; value != "" {
		if err := json.Unmarshal([]byte(value), &mark); err != nil {
			w.wrong = append(w.wrong, fmt.Errorf("the mark of %s/%s: %w", m.Namespace, m.Name, err))
		}
		w.marked[m.UID] = true
	}
	now := change != watch.Deleted && mark.State == v1alpha1.UnhealthyScheduled
	if now && !w.scheduled[m.UID] {
		w.begun++
	}
	delete(w.scheduled, m.UID)
	if now {
		w.scheduled[m.UID] = true
	}
	w.atOnce = max(w.atOnce, len(w.scheduled))
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// await waits until is reports true, and checks it after each change.
func (w *workers) await(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	for {
		w.mu.Lock()
		so, say := is(), fmt.Sprintf("%d marked, %d begun, %d made, %d gone", len(w.marked), w.begun, w.made, w.gone)
		w.mu.Unlock()
		if so {
			t.Logf("%s: %s", what, say)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s: %v: %s", what, ctx.Err(), say)
		case <-w.changed:
		}
	}
}

func (w *workers) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	harness.Must(t, errors.Join(w.wrong...))
	if w.atOnce != 1 || w.begun != replicaClusters || w.made != replicaClusters {
		t.Errorf("%d replacements at once, want 1; %d started, %d machines created, want %d of each", w.atOnce, w.begun, w.made, replicaClusters)
	}
}

// checkReplicaLog checks that the log never has two remediations in progress, that each is started once, and that a
// daemon appends nothing after another one claimed the owner.
func checkReplicaLog(ctx context.Context, t *testing.T, log *eventlog.Log) {
	t.Helper()
	catalog, active, begun := remediator.NewCatalog(), make(map[string]bool), 0
	owners := make(map[string]int)
	_, err := log.Replay(ctx, 0, func(r eventlog.Record) error {
		if r.Aggregate.Kind != eventlog.KindRemediation {
			return nil
		}
		events, err := r.Events()
		if err != nil {
			return err
		}
		for _, stored := range events {
			e, err := catalog.Decode(stored)
			if err != nil {
				return err
			}
			switch e.(type) {
			case remediator.SurgeRequested, remediator.HandedOver:
				active[r.Aggregate.ID] = true
				begun++
				owners[r.Aggregate.ID]++
			case remediator.Succeeded, remediator.Cancelled, remediator.SurgeConsumed:
				delete(active, r.Aggregate.ID)
			}
			if len(active) > 1 {
				t.Errorf("sequence %d: %d remediations are in progress, the limit is 1", r.Seq, len(active))
			}
		}
		return nil
	})
	harness.Must(t, err)
	if begun != replicaClusters || len(owners) != replicaClusters {
		t.Errorf("%d remediations of %d owners were started, want one of each of %d", begun, len(owners), replicaClusters)
	}
	claims := 0
	for owner := range owners {
		claims += claimsOf(ctx, t, log, eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner})
	}
	t.Logf("%d claims of %d owners", claims, len(owners))
	if claims <= replicaClusters {
		t.Errorf("%d claims, want one by a second daemon", claims)
	}
}
