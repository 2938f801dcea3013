package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/inventory"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// replace is a case in which machines become unhealthy and are replaced without intervention.
type replace struct {
	cluster testbed.Cluster
	policy  func(*v1alpha1.RepairPolicySpec)
	workers bool // the victim is a worker
	fault   fault
	victims int    // one if zero
	decides string // the expected decision about the first victim
	// members is the least number of members that must answer, machines the highest number of machines. Zero means that
	// the case has no etcd.
	members, machines int
	// also is checked at the end.
	also func(ctx context.Context, t *testing.T, c *cluster, victims []clusterv1.Machine)
}

// TestReplace makes machines of every kind of owner unhealthy in every way, and checks that they are replaced with the
// method that keeps most members of etcd available.
func TestReplace(t *testing.T) {
	daemon(t, scuted.DaemonOptions{})
	lever := 30 // days
	three := testbed.Cluster{ControlPlanes: 3, CertificateExpiryDays: lever}
	surge := methods(v1alpha1.MethodSurge, v1alpha1.MethodRelaxedSurge)
	t.Run("", func(t *testing.T) { // all at once
		for name, r := range rotation.Cases(t, 4, map[string]replace{
			"rollout surge":              {cluster: three, fault: notReady, decides: "RolloutSurge", members: 3, machines: 4},
			"rollout surge by template":  {cluster: testbed.Cluster{ControlPlanes: 3}, fault: notReady, decides: "RolloutSurge", members: 3, machines: 4},
			"rollout surge in topology":  {cluster: testbed.Cluster{ControlPlanes: 3, Topology: true}, fault: notReady, decides: "RolloutSurge", members: 3, machines: 4},
			"surge":                      {cluster: three, policy: surge, fault: notReady, decides: "Surge", members: 3, machines: 4},
			"surge in topology":          {cluster: testbed.Cluster{ControlPlanes: 3, Topology: true}, policy: surge, fault: notReady, decides: "Surge", members: 3, machines: 4},
			"kubelet dead":               {cluster: three, fault: kubeletDead, decides: "RolloutSurge (relaxed)", members: 3, machines: 4},
			"kubelet dead, by replicas":  {cluster: three, policy: surge, fault: kubeletDead, decides: "Surge (relaxed)", members: 3, machines: 4},
			"kubelet dead, port open":    {cluster: three, fault: portOpen(kubeletDead), decides: "RolloutSurge (relaxed)", members: 3, machines: 4},
			"kubelet of the leader dead": {cluster: three, fault: leaderDead, decides: "RolloutSurge (relaxed)", members: 3, machines: 4},
			"kubelet of the leader dead, port open": {
				cluster: three, fault: portOpen(leaderDead), decides: "RolloutSurge (relaxed)", members: 3, machines: 4,
			},
			"etcd member gone":        {cluster: three, fault: memberGone, decides: "OwnerRemediation", members: 2, machines: 3},
			"power lost":              {cluster: three, fault: powerLost, decides: "OwnerRemediation", members: 2, machines: 3},
			"one to three to one":     {cluster: testbed.Cluster{}, policy: surge, fault: notReady, decides: "Surge", members: 1, machines: 2},
			"one by rollout":          {cluster: testbed.Cluster{CertificateExpiryDays: lever}, fault: notReady, decides: "RolloutSurge", members: 1, machines: 2},
			"five":                    {cluster: testbed.Cluster{ControlPlanes: 5, CertificateExpiryDays: lever}, fault: notReady, decides: "RolloutSurge", members: 5, machines: 6},
			"five, two without power": {cluster: testbed.Cluster{ControlPlanes: 5}, fault: powerLost, victims: 2, decides: "OwnerRemediation", members: 3, machines: 5},
			"two victims":             {cluster: three, fault: notReady, victims: 2, decides: "RolloutSurge", members: 3, machines: 4},
			"failure domains": {
				cluster: testbed.Cluster{ControlPlanes: 3, CertificateExpiryDays: lever, FailureDomains: []string{"a", "b", "c"}},
				fault:   notReady, decides: "RolloutSurge", members: 3, machines: 4, also: spread,
			},
			"external etcd": {cluster: testbed.Cluster{ControlPlanes: 2, ExternalEtcd: true}, policy: surge, fault: notReady, decides: "Surge", machines: 3},
			"worker":        {cluster: testbed.Cluster{Workers: 2}, policy: workers, workers: true, fault: notReady, decides: "Surge", members: 1, machines: 1},
			"worker whose drain hangs": {
				cluster: testbed.Cluster{Workers: 2}, policy: bounded, workers: true, fault: drainHangs(notReady), decides: "Surge", members: 1, machines: 1,
			},
			"workers at once": {
				cluster: testbed.Cluster{Workers: 4}, policy: workersAtOnce, workers: true, fault: notReady, victims: 3, decides: "Surge", members: 1, machines: 1, also: atOnce(2),
			},
			"workers at once in topology": {
				cluster: testbed.Cluster{Workers: 3, Topology: true}, policy: workersAtOnce, workers: true, fault: kubeletDead, victims: 2, decides: "Surge", members: 1, machines: 1, also: atOnce(2),
			},
			"worker in topology": {cluster: testbed.Cluster{Workers: 2, Topology: true}, policy: workers, workers: true, fault: kubeletDead, decides: "Surge", members: 1, machines: 1},
		}) {
			t.Run(name, func(t *testing.T) { t.Parallel(); r.play(harness.Deadline(t, 8*time.Minute), t) })
		}
	})
}

func workers(s *v1alpha1.RepairPolicySpec) { s.Workers = true }

func (r replace) play(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, r.cluster)
	before := c.machines(ctx, !r.workers)
	replicas := c.kcp(ctx).Spec.Replicas
	d := keepDiary(t, c.Namespace)
	quorum := c.watchQuorum(t)
	p := policy(ctx, t, c.Namespace, r.policy)

	victims := choose(before, max(1, r.victims))
	for i := range victims {
		harness.Must(t, r.fault(ctx, c, &victims[i]))
	}
	began := time.Now()
	c.replaced(ctx, t, before, victims)
	t.Logf("replaced after %s", time.Since(began).Round(100*time.Millisecond))
	c.calm(ctx, t)
	harness.Must(t, shared.side.WaitAvailable(ctx, c.Namespace, c.Name))
	if now := c.kcp(ctx).Spec.Replicas; *now != *replicas {
		t.Errorf("%d replicas at the end, want %d as before", *now, *replicas)
	}
	if first := victims[0].Name; !d.decided(first, r.decides) {
		t.Errorf("no decision %s about %s", r.decides, first)
	}
	remembered(ctx, t, p, victims[0].Name, r.decides)
	quorum.never(t, r.members, r.machines)
	if r.also != nil {
		r.also(ctx, t, c, victims)
	}
}

// remembered waits until the policy has a machine's replacement in its history, and checks the entry.
func remembered(ctx context.Context, t *testing.T, p *v1alpha1.RepairPolicy, machine, method string) {
	t.Helper()
	awaitPolicy(ctx, t, p, "the policy has the replacement in its history", func(s *v1alpha1.RepairPolicyStatus) bool {
		i := slices.IndexFunc(s.History, func(r v1alpha1.PastRemediation) bool {
			return r.Machine == machine && r.Outcome == v1alpha1.RemediationSucceeded
		})
		if i < 0 {
			return false
		}
		if r := s.History[i]; r.Method != method || r.Reason == "" || r.Replacement == "" || r.Cluster == "" || !r.StartedAt.Before(&r.FinishedAt) {
			t.Errorf("history entry = %+v", r)
		}
		return true
	})
}

// choose returns n victims. It avoids the oldest machine if possible, because an owner would choose it by itself.
func choose(machines []clusterv1.Machine, n int) []clusterv1.Machine {
	if len(machines) > n {
		return slices.Clone(machines[1 : n+1])
	}
	return slices.Clone(machines[:n])
}

// replaced waits until the victims are replaced, and checks that every older, healthy machine still exists.
func (c *cluster) replaced(ctx context.Context, t *testing.T, before, victims []clusterv1.Machine) {
	t.Helper()
	_, controlPlane := before[0].Labels[clusterv1.MachineControlPlaneLabel]
	gone := map[types.UID]bool{}
	for i := range victims {
		gone[victims[i].UID] = true
	}
	harness.Await(ctx, t, "the victims are replaced", func() string {
		now, err := c.list(ctx, controlPlane)
		harness.Must(t, err)
		there := map[types.UID]bool{}
		for i := range now {
			there[now[i].UID] = now[i].DeletionTimestamp.IsZero()
			if gone[now[i].UID] {
				return now[i].Name + " is there"
			}
			if phase := now[i].Status.Phase; phase != string(clusterv1.MachinePhaseRunning) {
				return now[i].Name + " is " + phase
			}
		}
		for i := range before {
			if !gone[before[i].UID] && !there[before[i].UID] {
				t.Fatalf("the older machine %s was deleted", before[i].Name)
			}
		}
		if len(now) != len(before) {
			return fmt.Sprintf("%d machines", len(now))
		}
		return ""
	})
}

// calm waits until nothing remains of a remediation.
func (c *cluster) calm(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Await(ctx, t, "nothing is left of the remediation", func() string {
		left, err := c.left(ctx)
		harness.Must(t, err)
		return strings.Join(left, "; ")
	})
}

// left returns what remains of a remediation.
func (c *cluster) left(ctx context.Context) ([]string, error) {
	return inventory.LeftOfRemediations(ctx, shared.admin, c.Namespace, c.Name)
}

// spread checks that each failure domain has one machine.
func spread(ctx context.Context, t *testing.T, c *cluster, _ []clusterv1.Machine) {
	t.Helper()
	var domains []string
	for _, m := range c.machines(ctx, true) {
		domains = append(domains, m.Spec.FailureDomain)
	}
	slices.Sort(domains)
	if !slices.Equal(domains, c.spec.FailureDomains) {
		t.Errorf("machines in the failure domains %v, want one in each of %v", domains, c.spec.FailureDomains)
	}
}
