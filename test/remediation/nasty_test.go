package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// ward is a control plane of three with a policy. Its second machine is the intended victim.
type ward struct {
	*cluster
	diary  *diary
	quorum *sampler
	before []clusterv1.Machine
	victim *clusterv1.Machine
	policy *v1alpha1.RepairPolicy
}

func newWard(ctx context.Context, t *testing.T, spec testbed.Cluster, change func(*v1alpha1.RepairPolicySpec)) *ward {
	t.Helper()
	if spec.ControlPlanes == 0 {
		spec.ControlPlanes = 3
	}
	c := newCluster(ctx, t, spec)
	w := &ward{cluster: c, before: c.machines(ctx, true), diary: keepDiary(t, c.Namespace), quorum: c.watchQuorum(t)}
	w.victim = &choose(w.before, 1)[0]
	w.policy = policy(ctx, t, c.Namespace, change)
	return w
}

// TestNasty checks faults at the worst moment. In all cases etcd keeps its quorum, older, healthy machines stay, and no
// surplus machine remains.
func TestNasty(t *testing.T) {
	daemon(t, scuted.DaemonOptions{})
	t.Run("", func(t *testing.T) { // all at once
		for name, play := range rotation.Cases(t, 4, map[string]func(context.Context, *testing.T){
			"new machine never joins":             neverJoins,
			"new machine never joins, by rollout": neverJoinsRollout,
			"recovers mid-surge":                  func(ctx context.Context, t *testing.T) { recovers(ctx, t, methods(v1alpha1.MethodSurge)) },
			"recovers mid-rollout":                func(ctx context.Context, t *testing.T) { recovers(ctx, t, methods(v1alpha1.MethodRolloutSurge)) },
			"another is deleted mid-surge":        anotherDeleted,
			"replicas reverted":                   reverted,
			"upgrade mid-surge":                   upgradedMidSurge,
			"no room to surge":                    noRoom,
			"one dead, one without kubelet":       bothKinds,
			"majority lost":                       majorityLost,
			"foreign hook":                        foreignHook,
			"allowed hook":                        allowedHook,
			"held and released":                   heldAndReleased,
			"dry run":                             dryRun,
			"flapping":                            flapping,
			"aborted":                             aborted,
			"a reboot helps":                      rebooted,
			"a reboot does not help":              rebootedInVain,
			"a MachineSet of its own":             machineSet,
			"the Node alone says it":              nodeCondition,
			"about to stop":                       aboutToStop,
			"the database of etcd is full":        databaseFull,
			"people delete what etcd needs":       guarded,
			"another kind of control plane":       anotherKind,
			"Metal3 power-cycles the host":        metal3,
			"Tinkerbell fails to":                 tinkerbell,
		}) {
			t.Run(name, func(t *testing.T) { t.Parallel(); play(harness.Deadline(t, 8*time.Minute), t) })
		}
	})
}

// stays waits until exactly the earlier machines exist and have nothing of a remediation but the unhealthy annotation.
func (w *ward) stays(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Await(ctx, t, "the older machines are alone again", func() string {
		now, err := w.list(ctx, true)
		harness.Must(t, err)
		there := map[types.UID]bool{}
		for i := range now {
			there[now[i].UID] = true
			if !now[i].DeletionTimestamp.IsZero() {
				return now[i].Name + " is being deleted"
			}
			if _, marked := now[i].Annotations[clusterv1.DeleteMachineAnnotation]; marked {
				return now[i].Name + " is marked for deletion"
			}
		}
		for i := range w.before {
			if !there[w.before[i].UID] {
				t.Fatalf("the older machine %s was deleted", w.before[i].Name)
			}
		}
		if len(now) != len(w.before) {
			return fmt.Sprintf("%d machines", len(now))
		}
		return ""
	})
}

// count waits until there are n machines.
func (w *ward) count(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	harness.Await(ctx, t, fmt.Sprintf("there are %d machines", n), func() string {
		now, err := w.list(ctx, true)
		harness.Must(t, err)
		if len(now) == n {
			return ""
		}
		phase, message := w.diary.now(w.victim.Name)
		return fmt.Sprintf("there are %d; %s: %s", len(now), phase, message)
	})
}

// surges waits until there is a new machine. A new machine stays, so polling does not miss it.
func (w *ward) surges(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Await(ctx, t, "a new machine exists", func() string {
		now, err := w.list(ctx, true)
		harness.Must(t, err)
		for i := range now {
			if !slices.ContainsFunc(w.before, func(m clusterv1.Machine) bool { return m.UID == now[i].UID }) {
				return ""
			}
		}
		phase, message := w.diary.now(w.victim.Name)
		return fmt.Sprintf("%s: %s", phase, message)
	})
}

// phase waits until the victim's request is in a phase and its message has these parts.
func (w *ward) phase(ctx context.Context, t *testing.T, want v1alpha1.RemediationPhase, says ...string) {
	t.Helper()
	harness.Await(ctx, t, fmt.Sprintf("the request says %s %v", want, says), func() string {
		phase, message := w.diary.now(w.victim.Name)
		if phase != want || slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(message, s) }) {
			return fmt.Sprintf("it says %s: %s", phase, message)
		}
		return ""
	})
}

// olderKept fails the test if an earlier machine no longer exists, with some exceptions.
func (w *ward) olderKept(ctx context.Context, t *testing.T, but ...types.UID) {
	t.Helper()
	now := w.machines(ctx, true)
	for i := range w.before {
		m := &w.before[i]
		if !slices.Contains(but, m.UID) && !slices.ContainsFunc(now, func(n clusterv1.Machine) bool { return n.UID == m.UID }) {
			t.Errorf("the older machine %s was deleted", m.Name)
		}
	}
}

// healed waits until the cluster has all its machines, healthy, and nothing remains of a remediation.
func (w *ward) healed(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Must(t, shared.side.WaitAvailable(ctx, w.Namespace, w.Name))
	w.calm(ctx, t)
	if now := w.machines(ctx, true); len(now) != len(w.before) {
		t.Errorf("%d machines at the end, want as many as before", len(now))
	}
}

func impatient(allowed ...v1alpha1.RepairMethod) func(*v1alpha1.RepairPolicySpec) {
	return func(s *v1alpha1.RepairPolicySpec) {
		s.Methods, s.MaxAttempts = allowed, 2
		s.Timeouts.Ready.Duration = 10 * time.Second
	}
}

// neverJoins checks that a new machine that does not start is deleted, that this is retried once, and that the request
// then waits for an operator.
func neverJoins(ctx context.Context, t *testing.T) {
	neverJoinsBy(ctx, t, testbed.Cluster{}, impatient(v1alpha1.MethodSurge))
}

func neverJoinsRollout(ctx context.Context, t *testing.T) {
	neverJoinsBy(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, impatient(v1alpha1.MethodRolloutSurge))
}

func neverJoinsBy(ctx context.Context, t *testing.T, spec testbed.Cluster, change func(*v1alpha1.RepairPolicySpec)) {
	t.Helper()
	w := newWard(ctx, t, spec, change)
	w.stuckNewMachines(t)
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.phase(ctx, t, v1alpha1.RemediationFailed, "2 attempts")
	w.stays(ctx, t)
	w.quorum.never(t, 3, 4)
	harness.Must(t, wellAgain(ctx, w.cluster, w.victim))
	w.healed(ctx, t)
	w.olderKept(ctx, t)
}

// recovers checks that the new machine is deleted and the victim stays.
func recovers(ctx context.Context, t *testing.T, change func(*v1alpha1.RepairPolicySpec)) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, change)
	w.stuckNewMachines(t)
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.count(ctx, t, 4)
	harness.Must(t, wellAgain(ctx, w.cluster, w.victim))
	w.stays(ctx, t)
	w.healed(ctx, t)
	w.olderKept(ctx, t)
	w.quorum.never(t, 3, 4)
}

// anotherDeleted deletes a healthy machine while the new machine starts.
func anotherDeleted(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, methods(v1alpha1.MethodSurge))
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.surges(ctx, t)
	other := &w.before[2]
	harness.Must(t, shared.admin.Delete(ctx, other))
	harness.Await(ctx, t, "the victim is gone", func() string {
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), &clusterv1.Machine{})
		if client.IgnoreNotFound(err) == nil && err != nil {
			return ""
		}
		phase, message := w.diary.now(w.victim.Name)
		return fmt.Sprintf("%s: %s", phase, message)
	})
	w.healed(ctx, t)
	w.olderKept(ctx, t, w.victim.UID, other.UID)
	w.quorum.never(t, 2, 5)
}

// reverted resets the replicas after each change, as GitOps tools do.
func reverted(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, impatient(v1alpha1.MethodSurge))
	gitops, cancel := context.WithCancel(ctx)
	defer cancel()
	reverts := make(chan int, 1)
	go func() {
		n, last := 0, int64(0)
		defer func() { reverts <- n }()
		watch, err := shared.admin.Watch(gitops, &controlplanev1.KubeadmControlPlaneList{}, client.InNamespace(w.Namespace))
		if err != nil {
			t.Error(err)
			return
		}
		defer watch.Stop()
		for e := range watch.ResultChan() {
			if k, ok := e.Object.(*controlplanev1.KubeadmControlPlane); ok && *k.Spec.Replicas != 3 {
				if k.Generation != last { // changes of the status are ignored
					n, last = n+1, k.Generation
				}
				_ = shared.admin.Patch(gitops, k, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)))
			}
		}
	}()
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "it gives in, or gets through", func() string {
		phase, message := w.diary.now(w.victim.Name)
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), &clusterv1.Machine{})
		switch {
		case client.IgnoreNotFound(err) == nil && err != nil: // the new machine was created before the tool reverted the replicas
			return ""
		case phase == v1alpha1.RemediationFailed, phase == v1alpha1.RemediationFrozen && strings.Contains(message, "another client"):
			return ""
		default:
			return fmt.Sprintf("%s: %s", phase, message)
		}
	})
	cancel()
	n := <-reverts
	t.Logf("reverted %d times", n)
	if n > 6 {
		t.Errorf("replicas were changed %d times although another client reverts them", n)
	}
	w.olderKept(ctx, t, w.victim.UID)
	w.quorum.never(t, 2, 5)
}

// upgradedMidSurge checks that a rollout of the owner continues after a surge and also replaces the victim.
func upgradedMidSurge(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, methods(v1alpha1.MethodSurge))
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.surges(ctx, t)
	const version = "v1.36.1"
	harness.Must(t, shared.admin.Patch(ctx, w.kcp(ctx), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"`+version+`"}}`))))
	harness.Await(ctx, t, "all machines have the new version", func() string {
		now := w.machines(ctx, true)
		var old []string
		for i := range now {
			if now[i].Spec.Version != version {
				old = append(old, now[i].Name)
			}
		}
		return strings.Join(old, ", ")
	})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 5)
}

// noRoom checks an owner that may not create a machine first. An operator must accept that it deletes first.
func noRoom(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{MaxSurge: new(0), CertificateExpiryDays: 30}, methods(v1alpha1.MethodRolloutSurge, v1alpha1.MethodOwnerRemediation))
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "it says why it waits", func() string {
		phase, message := w.diary.now(w.victim.Name)
		if strings.Contains(message, "maxSurge") {
			return ""
		}
		return fmt.Sprintf("%s: %s", phase, message)
	})
	w.stays(ctx, t)
	harness.Must(t, shared.admin.Patch(ctx, w.policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"acceptDeleteFirst":true}}`))))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 2, 3)
}

// bothKinds checks a machine with a stopped kubelet and a healthy etcd, and another one without power. A surge is
// impossible. The one without power is replaced first, and then the other.
func bothKinds(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, nil)
	dead := &w.before[2]
	harness.Must(t, powerLost(ctx, w.cluster, dead))
	harness.Must(t, kubeletDead(ctx, w.cluster, w.victim))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim, *dead})
	w.healed(ctx, t)
	w.quorum.never(t, 2, 4)
}

// majorityLost checks that nothing is changed while two of three members are dead, until one recovers.
func majorityLost(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, nil)
	second := &w.before[2]
	harness.Must(t, w.CutEtcdOff(second.Status.NodeRef.Name))
	harness.Must(t, powerLost(ctx, w.cluster, w.victim))
	w.phase(ctx, t, v1alpha1.RemediationFrozen, "quorum is lost")
	w.stays(ctx, t)
	harness.Must(t, w.RejoinEtcd(ctx, second.Status.NodeRef.Name))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
}

// foreignHook checks that no replacement begins while another client's deletion hook would block the victim's deletion.
func foreignHook(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, nil)
	const hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/forensics"
	w.annotate(ctx, w.victim, hook, "somebody")
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.phase(ctx, t, v1alpha1.RemediationWaiting, "forensics")
	w.stays(ctx, t)
	w.annotate(ctx, w.victim, hook, "")
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}

// allowedHook checks that a machine with a hook that the policy allows is replaced, and deleted when the hook is
// removed.
func allowedHook(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, func(s *v1alpha1.RepairPolicySpec) { s.AllowedHooks = []string{"csi-*"} })
	const hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/csi-node"
	w.annotate(ctx, w.victim, hook, "somebody")
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "its deletion waits for the hook", func() string {
		m := &clusterv1.Machine{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), m))
		c := conditions.Get(m, clusterv1.MachineDeletingCondition)
		if c != nil && c.Reason == clusterv1.MachineDeletingWaitingForPreDrainHookReason {
			return ""
		}
		return fmt.Sprint(c)
	})
	w.phase(ctx, t, v1alpha1.RemediationRemoving)
	w.annotate(ctx, w.victim, hook, "")
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}

// heldAndReleased checks that an operator can hold a machine to inspect it, and release it.
func heldAndReleased(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, func(s *v1alpha1.RepairPolicySpec) { s.PauseRequests = []string{"maintenance"} })
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.phase(ctx, t, v1alpha1.RemediationWaiting, "maintenance")
	request := &v1alpha1.SurgeRemediation{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), request))
	harness.Must(t, shared.admin.Patch(ctx, request, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hold":{"reason":"forensics"}}}`))))
	harness.Must(t, shared.admin.Patch(ctx, w.policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pauseRequests":null}}`))))
	w.phase(ctx, t, v1alpha1.RemediationHeld, "forensics")
	w.stays(ctx, t)
	harness.Must(t, shared.admin.Patch(ctx, request, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hold":null}}`))))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
}

// dryRun checks that a policy with dryRun reports its decisions and changes nothing.
func dryRun(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, func(s *v1alpha1.RepairPolicySpec) { s.DryRun = true })
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "the policy sees it", func() string {
		p := &v1alpha1.RepairPolicy{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.policy), p))
		if p.Status.Unhealthy == 1 {
			return ""
		}
		return fmt.Sprintf("%d unhealthy: %s", p.Status.Unhealthy, p.Status.Message)
	})
	w.stays(ctx, t)
	for _, m := range w.machines(ctx, true) {
		if value, marked := m.Annotations[v1alpha1.UnhealthyAnnotation]; marked {
			t.Errorf("%s has the unhealthy annotation: %s", m.Name, value)
		}
	}
	checks := &clusterv1.MachineHealthCheckList{}
	harness.Must(t, shared.admin.List(ctx, checks, client.InNamespace(w.Namespace)))
	if len(checks.Items) > 0 {
		t.Errorf("%d health checks were created, want none", len(checks.Items))
	}
	harness.Must(t, shared.admin.Patch(ctx, w.policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dryRun":false}}`))))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}

// flapping checks a machine that fails and recovers repeatedly. It may be replaced, at most once, and no other machine
// is affected.
func flapping(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, nil)
	for range 4 {
		err := kubeletDead(ctx, w.cluster, w.victim)
		harness.Must(t, client.IgnoreNotFound(err))
		if err != nil {
			break // the node was deleted
		}
		harness.Await(ctx, t, "it is marked, or gone", func() string {
			m := &clusterv1.Machine{}
			err := shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), m)
			if err == nil && m.DeletionTimestamp.IsZero() && m.Annotations[v1alpha1.UnhealthyAnnotation] == "" {
				return "it is not"
			}
			return ""
		})
		if wellAgain(ctx, w.cluster, w.victim) != nil {
			break // the node was deleted
		}
	}
	w.healed(ctx, t)
	w.olderKept(ctx, t, w.victim.UID)
	w.quorum.never(t, 3, 4)
}
