package remediation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// The mass failure happens in 30 clusters, some of which have three control plane machines, one of them in the failure
// domain that fails.
const (
	failingClusters = 30
	failingLarge    = 10
	failingFlaps    = 3
	failingLimit    = 4 // remediations that may begin
)

// TestMassFailure makes a failure domain flap and then fail. A few replacements within the limits may begin before the
// mass failure is detected, and none afterwards. In the end all machines are healthy without intervention.
func TestMassFailure(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	daemon(t, scuted.DaemonOptions{})
	namespace := namespaceOf(t)
	clusters := massFailureFleet(ctx, t, namespace)
	d := keepDiary(t, namespace)
	before := map[types.UID]string{}
	var zone []*ward
	for _, c := range clusters {
		machines := c.machines(ctx, true)
		for i := range machines {
			before[machines[i].UID] = machines[i].Name
		}
		w := &ward{cluster: c, before: machines, diary: d, quorum: c.watchQuorum(t), victim: &choose(machines, 1)[0]}
		if c.spec.ControlPlanes == 3 || len(zone) < failingLarge+2 {
			zone = append(zone, w)
		}
	}
	p := policy(ctx, t, namespace, func(s *v1alpha1.RepairPolicySpec) { s.Limits.AtOnce, s.Limits.PerWindow = 2, failingLimit })
	for flap := range failingFlaps {
		for _, w := range zone {
			_ = kubeletDead(ctx, w.cluster, w.victim) // a replaced machine has no node any more
		}
		awaitPolicy(ctx, t, p, "there is a mass failure", func(s *v1alpha1.RepairPolicyStatus) bool { return s.MassFailure && s.Unhealthy > 0 })
		for _, w := range zone {
			_ = wellAgain(ctx, w.cluster, w.victim)
		}
		awaitPolicy(ctx, t, p, "all is well", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Unhealthy == 0 })
		t.Logf("flap %d is over", flap+1)
	}
	awaitPolicy(ctx, t, p, "nothing is under way", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Active == 0 && s.Unhealthy == 0 })
	made := 0
	for _, c := range clusters {
		harness.Must(t, shared.side.WaitAvailable(ctx, namespace, c.Name))
		machines := c.machines(ctx, true)
		if len(machines) != max(1, c.spec.ControlPlanes) {
			t.Errorf("%s has %d machines", c.Name, len(machines))
		}
		for i := range machines {
			if _, older := before[machines[i].UID]; !older {
				made++
			}
			delete(before, machines[i].UID)
		}
		c.calm(ctx, t)
	}
	gone := len(before)
	t.Logf("%d of %d machines were replaced in the mass failure; the limit is %d", gone, failingClusters-failingLarge+3*failingLarge, failingLimit)
	if gone > failingLimit || made != gone {
		t.Errorf("%d machines were deleted and %d created, want as many, and at most %d", gone, made, failingLimit)
	}
	for _, w := range zone {
		if w.spec.ControlPlanes == 3 {
			w.quorum.never(t, 3, 4)
		}
	}
}

// massFailureFleet creates the clusters, a few at a time.
func massFailureFleet(ctx context.Context, t *testing.T, namespace string) []*cluster {
	t.Helper()
	clusters := make([]*cluster, failingClusters)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 6)
	for i := range clusters {
		spec := testbed.Cluster{Namespace: namespace, Name: fmt.Sprintf("c%02d", i), ControlPlanes: 1, CertificateExpiryDays: 30}
		if i < failingLarge {
			spec.ControlPlanes = 3
		}
		w, err := shared.side.CreateCluster(ctx, spec)
		harness.Must(t, err)
		clusters[i] = &cluster{Workload: w, t: t, spec: spec}
		t.Cleanup(clusters[i].remove)
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := shared.side.WaitAvailable(ctx, namespace, spec.Name); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return clusters
}

func awaitPolicy(ctx context.Context, t *testing.T, p *v1alpha1.RepairPolicy, what string, is func(*v1alpha1.RepairPolicyStatus) bool) {
	t.Helper()
	harness.Await(ctx, t, what, func() string {
		now := &v1alpha1.RepairPolicy{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(p), now))
		if is(&now.Status) {
			return ""
		}
		s := now.Status
		return fmt.Sprintf("%d unhealthy of %d, %d under way, mass failure %v: %s", s.Unhealthy, s.Machines, s.Active, s.MassFailure, s.Message)
	})
}
