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

// ward is a control plane of three under a policy, with its second machine as the victim to be.
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

// TestNasty: what goes wrong in the worst moment. Whatever it is: etcd keeps its quorum, older, healthy machines stay, and no
// machine too many is left.
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

// stays waits until exactly the machines of before are there, and nothing of a remediation is left on them but the mark.
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
				t.Fatalf("the older machine %s is gone", w.before[i].Name)
			}
		}
		if len(now) != len(w.before) {
			return fmt.Sprintf("%d machines", len(now))
		}
		return ""
	})
}

// count waits until there are so many machines.
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

// surges waits until there is a machine that was not there before. It stays: a late look sees it too.
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

// phase waits until the victim's request is in a phase, and returns what it says.
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

// olderKept fails the test if a machine that was there before is not, but for those.
func (w *ward) olderKept(ctx context.Context, t *testing.T, but ...types.UID) {
	t.Helper()
	now := w.machines(ctx, true)
	for i := range w.before {
		m := &w.before[i]
		if !slices.Contains(but, m.UID) && !slices.ContainsFunc(now, func(n clusterv1.Machine) bool { return n.UID == m.UID }) {
			t.Errorf("the older machine %s is gone", m.Name)
		}
	}
}

// healed waits until the cluster has its machines, all well, and nothing is left of a remediation.
func (w *ward) healed(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Must(t, shared.side.WaitAvailable(ctx, w.Namespace, w.Name))
	w.calm(ctx, t)
	if now := w.machines(ctx, true); len(now) != len(w.before) {
		t.Errorf("%d machines at the end", len(now))
	}
}

func impatient(allowed ...v1alpha1.RepairMethod) func(*v1alpha1.RepairPolicySpec) {
	return func(s *v1alpha1.RepairPolicySpec) {
		s.Methods, s.MaxAttempts = allowed, 2
		s.Timeouts.Ready.Duration = 10 * time.Second
	}
}

// neverJoins: a new machine that does not start is taken back, again once more, and then a human is asked.
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

// recovers: the new machine goes, the victim stays.
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

// anotherDeleted: a human takes a healthy machine away while the new machine starts.
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

// reverted: somebody sets the replicas back whenever they change, as GitOps tools do.
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
				if k.Generation != last { // its status changes too
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
		case client.IgnoreNotFound(err) == nil && err != nil: // the new machine was quicker than the tool
			return ""
		case phase == v1alpha1.RemediationFailed, phase == v1alpha1.RemediationFrozen && strings.Contains(message, "somebody else"):
			return ""
		default:
			return fmt.Sprintf("%s: %s", phase, message)
		}
	})
	cancel()
	n := <-reverts
	t.Logf("reverted %d times", n)
	if n > 6 {
		t.Errorf("replicas were asked for %d times against somebody who did not want it", n)
	}
	w.olderKept(ctx, t, w.victim.UID)
	w.quorum.never(t, 2, 5)
}

// upgradedMidSurge: the owner's own rollout takes over, the victim goes with it.
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

// noRoom: where the owner may not make another machine first, a human has to accept that it deletes first.
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

// bothKinds: one machine without a kubelet, whose etcd is well, and one without power. A surge is out of the question; the
// dead one goes first, and only then the other.
func bothKinds(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, nil)
	dead := &w.before[2]
	harness.Must(t, powerLost(ctx, w.cluster, dead))
	harness.Must(t, kubeletDead(ctx, w.cluster, w.victim))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim, *dead})
	w.healed(ctx, t)
	w.quorum.never(t, 2, 4)
}

// majorityLost: two of three are dead. Nothing is touched, until one is back.
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

// foreignHook: somebody's deletion hook would hold the victim forever; nothing is begun until it is gone.
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

// allowedHook: the policy trusts the owner of a hook on the machine, so that it is replaced, and goes when the hook does.
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

// heldAndReleased: an operator keeps the machine for a look.
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

// dryRun: the policy says what it would do, and touches nothing.
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
			t.Errorf("%s is marked: %s", m.Name, value)
		}
	}
	checks := &clusterv1.MachineHealthCheckList{}
	harness.Must(t, shared.admin.List(ctx, checks, client.InNamespace(w.Namespace)))
	if len(checks.Items) > 0 {
		t.Errorf("%d health checks were made", len(checks.Items))
	}
	harness.Must(t, shared.admin.Patch(ctx, w.policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dryRun":false}}`))))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}

// flapping: a machine comes and goes. It may be replaced, at most once; nobody else is touched.
func flapping(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, nil)
	for range 4 {
		err := kubeletDead(ctx, w.cluster, w.victim)
		harness.Must(t, client.IgnoreNotFound(err))
		if err != nil {
			break // its node is gone
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
			break // its node is gone
		}
	}
	w.healed(ctx, t)
	w.olderKept(ctx, t, w.victim.UID)
	w.quorum.never(t, 3, 4)
}
