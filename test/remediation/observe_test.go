package remediation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/remediation" //nolint:depguard // which owners a change concerns
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/runner"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

var _ runner.Observer = (*observe.Observer)(nil)

// watcher observes one owner of a cluster and counts its requests, without watches.
type watcher struct {
	*observe.Observer
	c        *cluster
	requests *atomic.Int32
}

type counted struct {
	next     http.RoundTripper
	requests *atomic.Int32
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(r)
}

func (c *cluster) watch(ctx context.Context) *watcher {
	c.t.Helper()
	w := &watcher{c: c, requests: &atomic.Int32{}}
	local, err := guard.New(append(shared.bed.Cloud().Addresses(), "127.0.0.1")) // the addresses of the test bed
	harness.Must(c.t, err)
	config := shared.side.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{next, w.requests} })
	w.Observer, err = observe.New(ctx, config, local, nil)
	harness.Must(c.t, err)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Cache().Start(running) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	if !w.Cache().WaitForCacheSync(ctx) {
		c.t.Fatal("the cache did not fill")
	}
	return w
}

// owner returns the owner of a machine, as the Observer determines it.
func (w *watcher) owner(ctx context.Context, m *clusterv1.Machine) remediator.Owner {
	w.c.t.Helper()
	owner, ok, err := remediation.OwnerOf(ctx, w.Cache(), m)
	harness.Must(w.c.t, err)
	if !ok {
		w.c.t.Fatalf("machine %s has no owner", m.Name)
	}
	return owner
}

func (w *watcher) look(ctx context.Context, owner remediator.Owner) *remediator.Facts {
	w.c.t.Helper()
	f, err := w.Observe(ctx, owner, nil)
	harness.Must(w.c.t, err)
	return f
}

// until observes until the facts satisfy so.
func (w *watcher) until(ctx context.Context, owner remediator.Owner, what string, so func(*remediator.Facts) bool) *remediator.Facts {
	w.c.t.Helper()
	var f *remediator.Facts
	harness.Await(ctx, w.c.t, "the facts say: "+what, func() string {
		if f = w.look(ctx, owner); so(f) {
			return ""
		}
		return fmt.Sprintf("%+v", *f)
	})
	return f
}

func machineOf(f *remediator.Facts, name string) *remediator.Machine {
	for i := range f.Machines {
		if f.Machines[i].Name == name {
			return &f.Machines[i]
		}
	}
	return &remediator.Machine{}
}

// change merges a patch into an object.
func (c *cluster) change(ctx context.Context, o client.Object, patch string) {
	c.t.Helper()
	o, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		c.t.Fatal("no object")
	}
	harness.Must(c.t, shared.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// TestLookPlain checks the facts of a plain control plane, if it is healthy and with everything that makes a
// remediation wait.
func TestLookPlain(t *testing.T) {
	t.Parallel()
	ctx := harness.Deadline(t, 10*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3, Workers: 1, CertificateExpiryDays: 7, FailureDomains: []string{"a", "b", "c"}})
	policy := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "all"}}
	harness.Must(t, shared.admin.Create(ctx, policy))

	w := c.watch(ctx)
	machines := c.machines(ctx, true)
	victim := &machines[0]
	owner := w.owner(ctx, victim)
	kcp := c.kcp(ctx)
	if want := (remediator.Owner{Kind: "KubeadmControlPlane", Namespace: c.Namespace, Name: kcp.Name, UID: kcp.UID, Cluster: c.Name}); owner != want {
		t.Fatalf("owner = %+v, want %+v", owner, want)
	}

	t.Run("healthy", func(t *testing.T) {
		f := w.until(ctx, owner, "observed", func(f *remediator.Facts) bool { return f.Owner.Observed && f.Policy.Name != "" })
		want := remediator.OwnerFacts{
			Owner: owner, Found: true, Replicas: 3, Observed: true, MaxSurge: 1, Version: "v1.36.0",
			Tested: true, CertificateTrigger: true,
			Retry: remediator.Retry{MinHealthy: time.Duration(controlplanev1.DefaultMinHealthyPeriodSeconds) * time.Second},
		}
		if diff := cmp.Diff(want, f.Owner); diff != "" {
			t.Error(diff)
		}
		cluster := &clusterv1.Cluster{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, cluster))
		if diff := cmp.Diff(remediator.ClusterFacts{Found: true, UID: cluster.UID, Initialized: true, FailureDomains: []string{"a", "b", "c"}}, f.Cluster); diff != "" {
			t.Error(diff)
		}
		if len(f.Machines) != 3 || f.Etcd != nil {
			t.Errorf("%d machines and etcd %+v, want 3 and none", len(f.Machines), f.Etcd)
		}
		domains := make(map[string]bool)
		for _, m := range f.Machines {
			domains[m.FailureDomain] = true
			if m.Node == "" || m.Deleting || len(m.Hooks) > 0 || m.UnhealthyAnnotation != "" || m.Conditions[clusterv1.MachineReadyCondition].Status != object.True {
				t.Errorf("machine = %+v, want a healthy one with a node", m)
			}
		}
		if len(domains) != 3 {
			t.Errorf("failure domains = %v, want 3", slices.Sorted(maps.Keys(domains)))
		}
		// The defaults of the API server equal those for an object that is older than a field.
		defaults := observe.Policy(&v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: policy.UID}})
		if diff := cmp.Diff(defaults, f.Policy); diff != "" {
			t.Error(diff)
		}
		before := w.requests.Load()
		for range 100 {
			w.look(ctx, owner)
		}
		if sent := w.requests.Load() - before; sent > 0 {
			t.Errorf("100 observations of healthy machines sent %d requests, want none", sent)
		}
	})
	t.Run("worker", func(t *testing.T) {
		worker := &c.machines(ctx, false)[0]
		of := w.owner(ctx, worker)
		f := w.look(ctx, of)
		if of.Kind != "MachineDeployment" || of.Cluster != c.Name || !f.Owner.Found || f.Owner.Replicas != 1 || len(f.Machines) != 1 || f.Policy.Name != "" {
			t.Errorf("facts = %+v, want the MachineDeployment with one machine", f)
		}
		f, err := w.Probe(ctx, f)
		harness.Must(t, err)
		if f.Etcd != nil || f.Cluster.Reachable != object.True {
			t.Errorf("etcd %+v, reach %q; want none, and True", f.Etcd, f.Cluster.Reachable)
		}
	})
	t.Run("events", func(t *testing.T) {
		inside := &clusterv1.Cluster{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, inside))
		for _, about := range []struct {
			object client.Object
			owners int
		}{{victim, 1}, {kcp, 1}, {inside, 2}, {policy, 2}, {&v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: victim.Name}}, 1}} {
			owners, err := remediation.OwnersFor(ctx, w.Cache(), about.object)
			harness.Must(t, err)
			if len(owners) != about.owners || !slices.Contains(owners, owner) {
				t.Errorf("owners of %T = %+v, want the owner", about.object, owners)
			}
		}
	})
	t.Run("marks", func(t *testing.T) {
		for key, value := range map[string]string{
			clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup": "somebody", clusterv1.MachineSkipRemediationAnnotation: "true",
			clusterv1.RemediateMachineAnnotation: "true", v1alpha1.UnhealthyAnnotation: `{"state":"Unhealthy"}`,
		} {
			c.annotate(ctx, victim, key, value)
		}
		f := w.until(ctx, owner, "marked", func(f *remediator.Facts) bool {
			m := machineOf(f, victim.Name)
			return m.Skip && m.Remediate && m.UnhealthyAnnotation != "" && m.ClonedFrom != "" && slices.Equal(m.Hooks, []string{"pre-drain/backup"})
		})
		if m := machineOf(f, victim.Name); m.ClonedFrom != c.Name+"-machine" || machineOf(f, machines[1].Name).ClonedFrom != "" {
			t.Errorf("ClonedFrom = %q, want the template; machines, of which healthy ones have no ClonedFrom: %+v", m.ClonedFrom, f.Machines)
		}
		for _, key := range []string{
			clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup", clusterv1.MachineSkipRemediationAnnotation,
			clusterv1.RemediateMachineAnnotation, v1alpha1.UnhealthyAnnotation,
		} {
			c.annotate(ctx, victim, key, "")
		}
	})
	t.Run("paused", func(t *testing.T) {
		c.annotate(ctx, kcp, clusterv1.PausedAnnotation, "true")
		w.until(ctx, owner, "owner paused", func(f *remediator.Facts) bool { return f.Owner.Paused && !f.Cluster.Paused })
		c.annotate(ctx, kcp, clusterv1.PausedAnnotation, "")
		inside := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
		c.change(ctx, inside, `{"spec":{"paused":true}}`)
		w.until(ctx, owner, "cluster paused", func(f *remediator.Facts) bool { return f.Cluster.Paused && !f.Owner.Paused })
		c.change(ctx, inside, `{"spec":{"paused":null}}`)
	})
	t.Run("request", func(t *testing.T) {
		until := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
		request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: victim.Name}}
		request.Spec.Hold = &v1alpha1.RemediationHold{Until: &until, Reason: "forensics"}
		harness.Must(t, shared.admin.Create(ctx, request))
		f := w.until(ctx, owner, "requested", func(f *remediator.Facts) bool { return machineOf(f, victim.Name).Request != nil })
		want := &remediator.Request{UID: request.UID, Created: request.CreationTimestamp.Time, Manual: true, Hold: true, HoldUntil: until.Time, HoldReason: "forensics"}
		if diff := cmp.Diff(want, machineOf(f, victim.Name).Request); diff != "" {
			t.Error(diff)
		}
		harness.Must(t, shared.admin.Delete(ctx, request))
	})
	t.Run("rollouts", func(t *testing.T) {
		w.until(ctx, owner, "nothing rolls out", func(f *remediator.Facts) bool { return f.Owner.RollingOut == "" })
		// scute's own change: first the annotation, then the certificate's expiry. The owner reports the machine as
		// outdated, which is not a rollout by others.
		c.annotate(ctx, victim, clusterv1.DeleteMachineAnnotation, remediator.DeleteValue)
		c.annotate(ctx, victim, clusterv1.MachineCertificatesExpiryDateAnnotation, time.Now().UTC().Format(time.RFC3339))
		seen := false
		w.until(ctx, owner, "the victim is outdated, or already on its way", func(f *remediator.Facts) bool {
			if f.Owner.RollingOut != "" {
				t.Fatalf("scute's own change counts as a rollout: %s", f.Owner.RollingOut)
			}
			seen = seen || machineOf(f, victim.Name).Conditions[clusterv1.MachineUpToDateCondition].Status == object.False
			return seen && machineOf(f, victim.Name).Deleting
		})
		w.until(ctx, owner, "the victim is gone", func(f *remediator.Facts) bool {
			if f.Owner.RollingOut != "" {
				t.Fatalf("scute's own change counts as a rollout: %s", f.Owner.RollingOut)
			}
			return machineOf(f, victim.Name).Name == ""
		})
		c.change(ctx, c.kcp(ctx), `{"spec":{"version":"v1.36.1"}}`)
		w.until(ctx, owner, "an upgrade is under way", func(f *remediator.Facts) bool {
			return strings.Contains(f.Owner.RollingOut, "Version v1.36.0, v1.36.1 required")
		})
	})
	t.Run("gone", func(t *testing.T) {
		other := owner
		other.UID = "another"
		if f := w.look(ctx, other); f.Owner.Found || len(f.Machines) > 0 {
			t.Errorf("facts of an owner with another UID = %+v, want none", f)
		}
		c.remove()
		w.until(ctx, owner, "the cluster and its control plane are going", func(f *remediator.Facts) bool {
			return (f.Cluster.Deleting || !f.Cluster.Found) && (f.Owner.Deleting || !f.Owner.Found)
		})
	})
}

// TestLookTopology checks that the replicas of control planes and workers are those of the topology.
func TestLookTopology(t *testing.T) {
	t.Parallel()
	ctx := harness.Deadline(t, 10*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3, Workers: 2, Topology: true})
	w := c.watch(ctx)
	for wanted, machines := range map[int32][]clusterv1.Machine{3: c.machines(ctx, true), 2: c.machines(ctx, false)} {
		owner := w.owner(ctx, &machines[0])
		f := w.look(ctx, owner)
		if !f.Cluster.Topology || f.Cluster.TopologyReplicas != wanted || f.Owner.Replicas != wanted || len(f.Machines) != int(wanted) || f.Cluster.UpgradePending {
			t.Errorf("facts = %+v, want the replicas of the topology and no upgrade", f)
		}
	}
	owner := w.owner(ctx, &c.machines(ctx, true)[0])
	inside := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	c.annotate(ctx, c.kcp(ctx), clusterv1.PausedAnnotation, "true") // the topology reports a pending upgrade while nothing changes
	c.change(ctx, inside, `{"spec":{"topology":{"version":"v1.36.1"}}}`)
	f := w.until(ctx, owner, "an upgrade is pending or under way", func(f *remediator.Facts) bool {
		return f.Cluster.UpgradePending || f.Owner.RollingOut != ""
	})
	t.Logf("upgrade: pending %v, rolling out %q", f.Cluster.UpgradePending, f.Owner.RollingOut)
}

// asked calls Probe and waits until all goroutines that it started, which have a label, have ended.
func (w *watcher) asked(ctx context.Context, owner remediator.Owner) *remediator.Facts {
	w.c.t.Helper()
	f := w.look(ctx, owner)
	label := "ask-" + w.c.Namespace
	started := time.Now()
	pprof.Do(ctx, pprof.Labels("observe", label), func(ctx context.Context) {
		var err error
		f, err = w.Probe(ctx, f)
		harness.Must(w.c.t, err)
	})
	took := time.Since(started)
	harness.Await(ctx, w.c.t, "no goroutine of Ask is left", func() string {
		var all bytes.Buffer
		harness.Must(w.c.t, pprof.Lookup("goroutine").WriteTo(&all, 1))
		for _, one := range strings.Split(all.String(), "\n\n") {
			if strings.Contains(one, label) {
				return one
			}
		}
		return ""
	})
	w.c.t.Logf("asked in %s: reach %s, etcd %+v", took.Round(time.Millisecond), f.Cluster.Reachable, f.Etcd)
	return f
}

// TestAsk checks that every member of etcd is asked directly.
func TestAsk(t *testing.T) {
	t.Parallel()
	ctx := harness.Deadline(t, 10*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3})
	w := c.watch(ctx)
	machines := c.machines(ctx, true)
	owner := w.owner(ctx, &machines[0])
	var nodes []string
	for _, m := range machines {
		nodes = append(nodes, m.Status.NodeRef.Name)
	}

	f := w.asked(ctx, owner)
	leader := ""
	for _, m := range f.Etcd.Members {
		if m.Answers != object.True || m.Learner || !slices.Contains(nodes, m.Node) {
			t.Errorf("member = %+v, want a voter that answers", m)
		}
		if m.Leader {
			leader += m.Node
		}
	}
	if len(f.Etcd.Members) != 3 || f.Cluster.Reachable != object.True || !slices.Contains(nodes, leader) || f.Etcd.Err != "" || len(f.Etcd.Alarms) > 0 {
		t.Fatalf("etcd = %+v, want 3 members with a leader", f.Etcd)
	}

	// The leadership moves to the requested node and stays there.
	to := nodes[(slices.Index(nodes, leader)+1)%3]
	for range 2 {
		harness.Must(t, w.MoveLeader(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, nodes, to))
		for _, m := range w.asked(ctx, owner).Etcd.Members {
			if m.Leader != (m.Node == to) {
				t.Errorf("member after the leadership was moved to %s = %+v", to, m)
			}
		}
	}
	if err := w.MoveLeader(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, nodes, "nobody"); err == nil {
		t.Error("MoveLeader to an unknown node = nil, want an error")
	}

	// A removed member is in no member list: it neither votes nor counts for a machine.
	gone := nodes[(slices.Index(nodes, to)+1)%3]
	harness.Must(t, c.BreakEtcdMember(ctx, gone))
	f = w.asked(ctx, owner)
	if q := remediator.Count(f.Etcd); q.Voters != 2 || q.Answering != 2 {
		t.Errorf("etcd = %+v, want 2 voters that answer", f.Etcd)
	}
	for _, m := range f.Etcd.Members {
		if m.Node == gone {
			t.Errorf("removed member is listed: %+v", m)
		}
	}

	// No member is left that could list the members.
	for _, node := range nodes {
		if node != gone {
			harness.Must(t, c.BreakEtcdMember(ctx, node))
		}
	}
	if f = w.asked(ctx, owner); f.Etcd.Err == "" || len(f.Etcd.Members) > 0 || !strings.Contains(f.Etcd.Err, gone) {
		t.Errorf("etcd = %+v, want an error about the member", f.Etcd)
	}

	// Without the Secret no member can be asked.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name + "-etcd"}}
	if err := shared.admin.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if f = w.asked(ctx, owner); f.Cluster.Reachable != object.True || !strings.Contains(f.Etcd.Err, "c-etcd") {
		t.Errorf("reach %s, etcd %+v; want True, and an error about the Secret", f.Cluster.Reachable, f.Etcd)
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name + "-kubeconfig"}}
	c.change(ctx, kubeconfig, `{"data":{"value":null}}`)
	if f = w.asked(ctx, owner); f.Cluster.Reachable != object.Unknown || !strings.Contains(f.Etcd.Err, "c-kubeconfig") {
		t.Errorf("reach %s, etcd %+v; want Unknown, and an error about the kubeconfig", f.Cluster.Reachable, f.Etcd)
	}
}

// TestAskBehindDeadKubelets checks that members with stopped kubelets are asked in other ways, and that the leadership
// can be moved to them and from them. A machine without power is not mistaken for one of these.
func TestAskBehindDeadKubelets(t *testing.T) {
	t.Parallel()
	ctx := harness.Deadline(t, 10*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3})
	w := c.watch(ctx)
	machines := c.machines(ctx, true)
	owner := w.owner(ctx, &machines[0])
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	var nodes []string
	for _, m := range machines {
		nodes = append(nodes, m.Status.NodeRef.Name)
	}
	harness.Must(t, c.OpenClientPort(ctx, nodes[1]))
	harness.Await(ctx, t, "the Machine shows its address", func() string {
		if m := c.machines(ctx, true)[1]; len(m.Status.Addresses) == 0 {
			return "it does not"
		}
		return ""
	})
	for _, node := range nodes[:2] {
		harness.Must(t, c.StopKubelet(ctx, node))
	}
	// On a busy computer the client port may answer too late. Then the peer is asked.
	ways := map[string]string{nodes[0]: "etcdctl in etcd-" + nodes[2], nodes[1]: "client port 127.", nodes[2]: "port-forward"}
	found := w.until(ctx, owner, "both nodes are Unknown", func(f *remediator.Facts) bool {
		unknown := 0
		for _, m := range f.Machines {
			if m.Conditions[clusterv1.MachineNodeReadyCondition].Status == object.Unknown {
				unknown++
			}
		}
		return unknown == 2
	})
	harness.Await(ctx, t, "each is asked in its own way", func() string {
		found = w.asked(ctx, owner)
		for _, m := range found.Etcd.Members {
			if m.Answers != object.True || !strings.HasPrefix(m.Via, ways[m.Node]) {
				return fmt.Sprintf("%+v", m)
			}
		}
		return ""
	})
	for _, leader := range nodes[:2] {
		harness.Must(t, c.Lead(ctx, leader))
		harness.Must(t, w.MoveLeader(ctx, key, nodes, nodes[2]))
		for _, m := range w.asked(ctx, owner).Etcd.Members {
			if m.Leader != (m.Node == nodes[2]) {
				t.Errorf("member after the leadership was moved from %s to %s = %+v", leader, nodes[2], m)
			}
		}
	}
	for _, node := range nodes[:2] {
		harness.Must(t, c.PowerOff(ctx, node))
		found = w.asked(ctx, owner)
		for _, m := range found.Etcd.Members {
			if dead := m.Node == node; dead && (m.Answers != object.Unknown || !strings.Contains(m.Reason, "etcdctl in etcd-"+nodes[2])) {
				t.Errorf("member of a machine without power = %+v, want Unknown with the reason", m)
			}
		}
	}
}

// TestAskExternal checks that the members of an external etcd are not asked.
func TestAskExternal(t *testing.T) {
	t.Parallel()
	ctx := harness.Deadline(t, 10*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 2, ExternalEtcd: true})
	w := c.watch(ctx)
	owner := w.owner(ctx, &c.machines(ctx, true)[0])
	f := w.asked(ctx, owner)
	if !f.Owner.ExternalEtcd || f.Etcd != nil || f.Cluster.Reachable != object.True {
		t.Errorf("facts = %+v, want an external etcd without members", f)
	}
}
