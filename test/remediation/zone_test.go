package remediation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// zoneClusters is the number of clusters, each in its own namespace, with a machine in the failing failure domain.
const zoneClusters = 4

// TestZoneOutage makes a failure domain lose its power. Each cluster has only one unhealthy machine, which would be
// replaced in the same failure domain. No replacement begins until the failure domain recovers, and then one at a time.
func TestZoneOutage(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	limits := zoneLimits()
	harness.Must(t, shared.admin.Create(ctx, limits))
	t.Cleanup(func() {
		harness.Must(t, client.IgnoreNotFound(shared.admin.Delete(context.WithoutCancel(ctx), limits)))
	})
	daemon(t, scuted.DaemonOptions{})
	wards := zoneWards(ctx, t)
	seen := watchZone(ctx, t, wards)
	for _, w := range wards {
		harness.Must(t, powerLost(ctx, w.cluster, w.victim))
	}
	limitsSay(ctx, t, "all of them are unhealthy", func(s *v1alpha1.RepairLimitsStatus) bool { return s.Unhealthy == zoneClusters })
	patch := client.MergeFrom(limits.DeepCopy())
	limits.Spec.PauseRequests = nil
	harness.Must(t, shared.admin.Patch(ctx, limits, patch))
	for _, w := range wards {
		w.phase(ctx, t, v1alpha1.RemediationWaiting, "failure domain "+zone)
	}
	if made, _ := seen.counts(); made != 0 {
		t.Errorf("%d machines were created while the failure domain failed, want none", made)
	}
	for _, w := range wards[:2] {
		harness.Must(t, w.PowerOn(ctx, w.victim.Status.NodeRef.Name))
	}
	for _, w := range wards[2:] {
		w.healed(ctx, t)
	}
	made, atOnce := seen.counts()
	if made != zoneClusters-2 || atOnce != 1 {
		t.Errorf("%d machines were created, %d of them at once, want %d, one at a time", made, atOnce, zoneClusters-2)
	}
	for _, w := range wards {
		w.quorum.never(t, 2, 3)
	}
}

// zone is the failure domain that fails.
const zone = "a"

// zoneLimits returns RepairLimits that do not allow any remediation yet.
func zoneLimits() *v1alpha1.RepairLimits {
	short := &v1alpha1.Duration{Duration: time.Second}
	return &v1alpha1.RepairLimits{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName},
		Spec: v1alpha1.RepairLimitsSpec{
			PauseRequests: []string{"until all see the outage"}, AtOnce: 1,
			FailureDomains: v1alpha1.FailureDomainLimits{MassFailure: v1alpha1.FailureDomainMassFailure{Percent: 50, Floor: 3, Cooldown: short}},
		},
	}
}

// zoneWards creates clusters of three with a machine in each failure domain. The victim is the one in zone.
func zoneWards(ctx context.Context, t *testing.T) []*ward {
	t.Helper()
	wards := make([]*ward, zoneClusters)
	for i := range wards {
		spec := testbed.Cluster{Namespace: fmt.Sprintf("zone-%d", i), Name: "c", ControlPlanes: 3, CertificateExpiryDays: 30, FailureDomains: []string{zone, "b", "c"}}
		w, err := shared.side.CreateCluster(ctx, spec)
		harness.Must(t, err)
		wards[i] = &ward{cluster: &cluster{Workload: w, t: t, spec: spec}}
		t.Cleanup(wards[i].remove)
	}
	for _, w := range wards {
		harness.Must(t, shared.side.WaitAvailable(ctx, w.Namespace, w.Name))
		w.before = w.machines(ctx, true)
		for i := range w.before {
			if w.before[i].Spec.FailureDomain == zone {
				w.victim = &w.before[i]
			}
		}
		if w.victim == nil {
			t.Fatalf("%s has no machine in failure domain %s", w.Namespace, zone)
		}
		w.diary, w.quorum = keepDiary(t, w.Namespace), w.watchQuorum(t)
		w.policy = policy(ctx, t, w.Namespace, nil)
	}
	return wards
}

// limitsSay waits until the status of the RepairLimits satisfies is.
func limitsSay(ctx context.Context, t *testing.T, what string, is func(*v1alpha1.RepairLimitsStatus) bool) {
	t.Helper()
	harness.Await(ctx, t, what, func() string {
		now := &v1alpha1.RepairLimits{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Name: v1alpha1.RepairLimitsName}, now))
		if is(&now.Status) {
			return ""
		}
		return now.Status.Message
	})
}

// zoneWatch records each change of the clusters' machines.
type zoneWatch struct {
	mu        sync.Mutex
	known     map[types.UID]bool
	scheduled map[types.UID]bool // victims with a replacement in progress
	made      int
	atOnce    int // highest number scheduled at the same time
}

func watchZone(ctx context.Context, t *testing.T, wards []*ward) *zoneWatch {
	t.Helper()
	z := &zoneWatch{known: make(map[types.UID]bool), scheduled: make(map[types.UID]bool)}
	ours := make(map[string]bool)
	for _, w := range wards {
		ours[w.Namespace] = true
		for i := range w.before {
			z.known[w.before[i].UID] = true
		}
	}
	changes, err := shared.admin.Watch(ctx, &clusterv1.MachineList{}) // one watch for all, so that changes arrive in order
	harness.Must(t, err)
	t.Cleanup(changes.Stop)
	go func() {
		for e := range changes.ResultChan() {
			if m, ok := e.Object.(*clusterv1.Machine); ok && ours[m.Namespace] {
				z.take(m, e.Type == watch.Deleted)
			}
		}
	}()
	return z
}

func (z *zoneWatch) take(m *clusterv1.Machine, gone bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.known[m.UID] {
		z.known[m.UID] = true
		z.made++
	}
	var mark v1alpha1.UnhealthyMark
	_ = json.Unmarshal([]byte(m.Annotations[v1alpha1.UnhealthyAnnotation]), &mark) // an invalid annotation counts as none
	delete(z.scheduled, m.UID)
	if !gone && mark.State == "Scheduled" {
		z.scheduled[m.UID] = true
	}
	z.atOnce = max(z.atOnce, len(z.scheduled))
}

func (z *zoneWatch) counts() (made, atOnce int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.made, z.atOnce
}
