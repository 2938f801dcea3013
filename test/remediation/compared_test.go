package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// rolledTo is the version of Kubernetes of a rollout.
const rolledTo = "v1.36.1"

// apiServerHealthy is the condition of the API server on a machine. It is Unknown if the node is silent.
const apiServerHealthy = controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition

// comparedFaults returns the faults that both systems get. A fault in before happens without any remediation, so it has
// already stopped the control plane.
func comparedFaults() map[string]compared {
	one, three, five := testbed.Cluster{ControlPlanes: 1}, testbed.Cluster{ControlPlanes: 3}, testbed.Cluster{ControlPlanes: 5}
	external, workers := testbed.Cluster{ControlPlanes: 3, ExternalEtcd: true}, testbed.Cluster{Workers: 3}
	silent := func(f fault) step { return steps(to(f), seen(apiServerHealthy, metav1.ConditionUnknown)) }
	return map[string]compared{
		"kubelet dead, then scaled up":           {row: "R1", cluster: three, before: steps(silent(kubeletDead), scaled(5))},
		"kubelet dead, then scaled down":         {row: "R1", cluster: five, before: steps(silent(kubeletDead), scaled(3)), goes: 1},
		"kubelet dead, then another one deleted": {row: "R1", cluster: five, before: steps(silent(kubeletDead), deleted), goes: 1},
		"new machine never starts":               {row: "R2", cluster: three, before: neverStarts(scaled(5))},
		"worker of a rollout never starts": {
			row: "R3", cluster: workers, workers: true, before: neverStarts(workersRolled), goes: 3, to: rolledTo,
		},
		"old worker not ready, OnDelete": {row: "R4", cluster: workers, workers: true, before: onDelete(false), fault: to(notReady)},
		"new worker not ready, OnDelete": {row: "R4", cluster: workers, workers: true, before: onDelete(true), fault: to(notReady)},
		"kubelet dead, external etcd":    {row: "R5", cluster: external, fault: to(kubeletDead)},
		"kubelet dead":                   {row: "R6", cluster: three, fault: to(kubeletDead)},
		"kubelet of the leader dead":     {row: "R6", cluster: three, fault: to(leaderDead)},
		"paused in a replacement":        {row: "R20", cluster: three, fault: steps(to(notReady), pausedMidway)},
		"power lost in a rollout":        {row: "R21", cluster: three, fault: steps(rolled, to(powerLost)), goes: 2, to: rolledTo},
		"kubelet dead in a rollout":      {row: "R21", cluster: three, fault: steps(rolled, to(kubeletDead)), goes: 2, to: rolledTo},
		"power lost, then scaled up":     {row: "R22", cluster: three, before: steps(silent(powerLost), scaled(5))},

		"node not ready":                 {cluster: three, fault: to(notReady)},
		"node not ready, single machine": {cluster: one, fault: to(notReady)},
		"power lost":                     {cluster: three, fault: to(powerLost)},
		"power of the leader lost":       {cluster: three, fault: to(leaderLost)},
		"power lost, two of five":        {cluster: five, victims: 2, fault: to(powerLost)},
		"etcd member silent":             {cluster: three, fault: memberSilent},
		"etcd member removed":            {cluster: three, fault: to(memberGone)},
		"API server down on one machine": {
			cluster: three, policy: apiServerChecked, fault: steps(to(apiServerDown), seen(apiServerHealthy, metav1.ConditionFalse)),
		},
		"quorum lost for a while": {cluster: three, fault: quorumLost},
		"node flaps":              {cluster: three, fault: flaps, recovers: true},
		"kubelet dead, paused":    {cluster: three, fault: steps(paused(true), to(kubeletDead), leftAlone, paused(false))},
		"kubelet of a worker dead": {
			cluster: workers, workers: true, fault: to(kubeletDead),
		},

		"first machine never starts": {row: "P1", cluster: three, fresh: true, firstStuck: true, before: neverStarts(begun)},
		"slow new cluster": {
			row: "P2", cluster: testbed.Cluster{ControlPlanes: 1, Workers: 2, Startup: 45 * time.Second}, workers: true, fresh: true, policy: briefStartup,
			before: workersThere, recovers: true,
		},
		"node not ready in an upgrade": {
			row: "P5", cluster: testbed.Cluster{ControlPlanes: 1, Workers: 3}, workers: true, policy: quick,
			before: upgrading, fault: steps(to(notReady), heldBack),
		},
		"node not ready, other etcd broken": {row: "P7", cluster: three, policy: quick, fault: anotherBroken},

		"etcd member of the same name": {cluster: three, before: to(namesake), fault: to(notReady)},
		"Node deleted":                 {cluster: three, fault: to(nodeDeleted)},
		"Node of a worker deleted":     {cluster: workers, workers: true, fault: to(nodeDeleted)},
		"more workers denied": {
			cluster: workers, workers: true, policy: givesUpAfter(75 * time.Second), // it waits a minute before it reports that a write is denied
			fault: denied("machinedeployments", admissionv1.Update, "object.spec.replicas <= oldObject.spec.replicas", "cannot be written"),
		},
		"new worker denied":                     {cluster: workers, workers: true, policy: givesUpAfter(25 * time.Second), fault: denied("machines", admissionv1.Create, "false", "makes no machine")},
		"new control plane machine denied":      {cluster: three, policy: givesUpAfter(25 * time.Second), fault: denied("machines", admissionv1.Create, "false", "makes no machine")},
		"node not ready and unknown in turn":    {cluster: three, policy: slow, fault: alternates(corev1.ConditionFalse, corev1.ConditionUnknown)},
		"worker not ready for changing reasons": {cluster: workers, workers: true, policy: slow, fault: alternates(corev1.ConditionFalse)},
		"old worker never starts, then a rollout": {
			cluster: testbed.Cluster{Workers: 3, Startup: 15 * time.Second}, workers: true, before: steps(neverStarts(deleted), workersRolled), goes: 3, to: rolledTo,
		},
	}
}

// to returns a step that causes a fault of the victims.
func to(f fault) step {
	return func(ctx context.Context, l *lane) {
		for i := range l.victims {
			harness.Must(l.t, f(ctx, l.cluster, &l.victims[i]))
		}
	}
}

func steps(all ...step) step {
	return func(ctx context.Context, l *lane) {
		for _, s := range all {
			s(ctx, l)
		}
	}
}

// seen waits until a condition of the victims has this status.
func seen(condition string, status metav1.ConditionStatus) step {
	return func(ctx context.Context, l *lane) {
		for i := range l.victims {
			l.awaitCondition(ctx, l.victims[i].Name, condition, status)
		}
	}
}

func scaled(replicas int) step {
	return func(ctx context.Context, l *lane) {
		l.change(ctx, l.kcp(ctx), fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	}
}

// deleted deletes a healthy machine, as a user does.
func deleted(ctx context.Context, l *lane) {
	harness.Must(l.t, shared.admin.Delete(ctx, &l.before[2]))
}

// newMachine waits for a machine that did not exist before.
func (l *lane) newMachine(ctx context.Context) *clusterv1.Machine {
	var found *clusterv1.Machine
	harness.Await(ctx, l.t, "a new machine exists", func() string {
		now := l.machines(ctx, !l.fault.workers)
		i := slices.IndexFunc(now, func(m clusterv1.Machine) bool {
			return !slices.ContainsFunc(l.before, func(b clusterv1.Machine) bool { return b.UID == m.UID })
		})
		if i < 0 {
			return "there is none"
		}
		found = &now[i]
		return ""
	})
	return found
}

// neverStarts makes the first new machine, which never starts, the victim, as an operator would. Later machines start.
func neverStarts(growth step) step {
	return func(ctx context.Context, l *lane) {
		release := l.release
		if release == nil {
			release = l.stuckNewMachines(l.t)
		}
		growth(ctx, l)
		m := l.newMachine(ctx)
		harness.Await(ctx, l.t, "it is held up", func() string {
			if l.infra(ctx, m).Spec.Backend.InMemory.VM.Provisioning.StartupDuration.Duration < time.Hour {
				return "it is not"
			}
			return ""
		})
		release()
		l.annotate(ctx, m, clusterv1.RemediateMachineAnnotation, "true")
		l.victims = []clusterv1.Machine{*m}
	}
}

// rolled begins a rollout of the control plane, and waits for its new machine.
func rolled(ctx context.Context, l *lane) {
	l.change(ctx, l.kcp(ctx), `{"spec":{"version":"`+rolledTo+`"}}`)
	l.newMachine(ctx)
}

func workersRolled(ctx context.Context, l *lane) {
	l.change(ctx, l.deployment(), `{"spec":{"template":{"spec":{"version":"`+rolledTo+`"}}}}`)
}

func (l *lane) deployment() *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name + "-md-0"}}
}

// onDelete sets the workers' strategy OnDelete and a new version, which one of them has. If newer is true that one is
// the victim.
func onDelete(newer bool) step {
	return func(ctx context.Context, l *lane) {
		l.change(ctx, l.deployment(), `{"spec":{"rollout":{"strategy":{"type":"OnDelete","rollingUpdate":null}}}}`)
		workersRolled(ctx, l)
		harness.Must(l.t, shared.admin.Delete(ctx, &l.before[0]))
		m := l.newMachine(ctx)
		harness.Await(ctx, l.t, "one of three workers is new", func() string { return l.unfinished(ctx) })
		l.before = l.machines(ctx, false)
		i := slices.IndexFunc(l.before, func(b clusterv1.Machine) bool { return (b.UID == m.UID) == newer })
		l.victims = []clusterv1.Machine{l.before[i]}
	}
}

func paused(is bool) step {
	return func(ctx context.Context, l *lane) {
		l.change(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}}, fmt.Sprintf(`{"spec":{"paused":%v}}`, is))
		harness.Await(ctx, l.t, fmt.Sprintf("the control plane is paused: %v", is), func() string {
			if got := conditions.IsTrue(l.kcp(ctx), clusterv1.PausedCondition); got != is {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
}

// pausedMidway pauses the cluster when a replacement has begun, as a move does, and resumes it.
func pausedMidway(ctx context.Context, l *lane) {
	harness.Await(ctx, l.t, "a replacement has begun", func() string {
		if l.untouched(ctx) {
			return "it has not"
		}
		return ""
	})
	steps(paused(true), paused(false))(ctx, l)
}

// leftAlone checks for some seconds that the machines do not change.
func leftAlone(ctx context.Context, l *lane) {
	for range 10 {
		time.Sleep(time.Second / 2)
		l.outcome.Touched = l.outcome.Touched || !l.untouched(ctx)
	}
}

// untouched reports whether the machines are the same as before and none is being deleted.
func (l *lane) untouched(ctx context.Context) bool {
	now := l.machines(ctx, !l.fault.workers)
	return len(now) == len(l.before) && !slices.ContainsFunc(now, func(m clusterv1.Machine) bool {
		return !m.DeletionTimestamp.IsZero() || !slices.ContainsFunc(l.before, func(b clusterv1.Machine) bool { return b.UID == m.UID })
	})
}

func leaderLost(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	if err := c.Lead(ctx, m.Status.NodeRef.Name); err != nil {
		return err
	}
	return powerLost(ctx, c, m)
}

// memberSilent stops the etcd member of a machine that is not ready.
func memberSilent(ctx context.Context, l *lane) {
	harness.Must(l.t, l.Lead(ctx, l.before[0].Status.NodeRef.Name))
	to(func(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
		if err := c.CutEtcdOff(m.Status.NodeRef.Name); err != nil {
			return err
		}
		return notReady(ctx, c, m)
	})(ctx, l)
}

func apiServerDown(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.StopAPIServer(ctx, m.Status.NodeRef.Name)
}

func apiServerChecked(s *v1alpha1.RepairPolicySpec) {
	s.Checks.UnhealthyMachineConditions = []v1alpha1.UnhealthyCondition{
		{Type: apiServerHealthy, Status: "False", Timeout: v1alpha1.Duration{Duration: time.Second}},
	}
}

// quorumLost silences two of three members until the system reports why it waits, or acts. Then one recovers.
func quorumLost(ctx context.Context, l *lane) {
	second := l.before[2].Status.NodeRef.Name
	harness.Must(l.t, l.CutEtcdOff(second))
	to(powerLost)(ctx, l)
	harness.Await(ctx, l.t, "the system says why it waits, or acts", func() string {
		if !l.untouched(ctx) {
			l.outcome.Touched = true
			return ""
		}
		m := &clusterv1.Machine{}
		harness.Must(l.t, shared.admin.Get(ctx, client.ObjectKeyFromObject(&l.victims[0]), m))
		if phase, _ := l.says(m.Name); phase == v1alpha1.RemediationFrozen {
			return ""
		}
		if k := conditions.Get(m, clusterv1.MachineOwnerRemediatedCondition); k != nil && strings.Contains(k.Message, "etcd") {
			return ""
		}
		return saidOf(m)
	})
	harness.Must(l.t, l.RejoinEtcd(ctx, second))
}

// flaps stops and starts the kubelet of the victim several times.
func flaps(ctx context.Context, l *lane) {
	for range 4 {
		to(kubeletDead)(ctx, l)
		gone := false
		harness.Await(ctx, l.t, "its Machine shows it, or is gone", func() string {
			m := &clusterv1.Machine{}
			err := shared.admin.Get(ctx, client.ObjectKeyFromObject(&l.victims[0]), m)
			harness.Must(l.t, client.IgnoreNotFound(err))
			gone = err != nil || !m.DeletionTimestamp.IsZero()
			if gone || conditions.IsUnknown(m, clusterv1.MachineNodeReadyCondition) {
				return ""
			}
			return "it is ready"
		})
		if gone || wellAgain(ctx, l.cluster, &l.victims[0]) != nil {
			return
		}
	}
}

// begun does nothing, because a new cluster grows by itself.
func begun(context.Context, *lane) {}

// briefStartup limits the time until a Node exists to less than a slow cluster needs after the creation of the
// machines.
func briefStartup(s *v1alpha1.RepairPolicySpec) {
	s.Checks.NodeStartup = &v1alpha1.Duration{Duration: 70 * time.Second}
}

// quick makes the policy give up a replacement that is not created soon.
func quick(s *v1alpha1.RepairPolicySpec) {
	s.Timeouts.ScaleUp = &v1alpha1.Duration{Duration: 10 * time.Second}
}

// workersThere waits for the workers of a new cluster, and uses them as the machines before the fault.
func workersThere(ctx context.Context, l *lane) {
	harness.Await(ctx, l.t, "its workers are made", func() string {
		if l.before = l.machines(ctx, false); len(l.before) < l.spec.Workers {
			return fmt.Sprintf("%d of %d", len(l.before), l.spec.Workers)
		}
		return ""
	})
}

// upgrading begins an upgrade of the control plane that does not end before heldBack does. During the upgrade
// MachineSets create no machine.
func upgrading(ctx context.Context, l *lane) {
	release := l.stuckNewMachines(l.t)
	l.change(ctx, l.kcp(ctx), `{"spec":{"version":"`+rolledTo+`"}}`)
	harness.Await(ctx, l.t, "its new machine is there", func() string {
		if n := len(l.machines(ctx, true)); n < 2 {
			return fmt.Sprintf("%d machines", n)
		}
		return ""
	})
	release()
}

// heldBack blocks new workers for longer than three attempts take. Then the upgrade continues.
func heldBack(ctx context.Context, l *lane) {
	time.Sleep(time.Minute)
	if phase, message := l.says(l.victims[0].Name); l.diary != nil && (phase != v1alpha1.RemediationFrozen || !strings.Contains(message, "preflight check failed")) {
		l.t.Errorf("it says %s: %s", phase, message)
	}
	l.startStuck(ctx, l.t)
}

// anotherBroken breaks the etcd pod of another machine, which no health check examines, but the control plane's
// preflight does.
func anotherBroken(ctx context.Context, l *lane) {
	other := &l.before[2]
	harness.Must(l.t, l.BreakEtcdPod(ctx, other.Status.NodeRef.Name))
	l.awaitCondition(ctx, other.Name, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, metav1.ConditionFalse)
	to(notReady)(ctx, l)
	harness.Await(ctx, l.t, "the victim goes", func() string {
		m := &clusterv1.Machine{}
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(&l.victims[0]), m)
		harness.Must(l.t, client.IgnoreNotFound(err))
		if err == nil && m.DeletionTimestamp.IsZero() {
			_, message := l.says(m.Name)
			return message + saidOf(m)
		}
		return ""
	})
	harness.Must(l.t, l.RestoreEtcdPod(ctx, other.Status.NodeRef.Name))
}

// nodeDeleted deletes the Node of a machine whose kubelet is healthy, as a user does.
func nodeDeleted(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.DeleteNode(ctx, m.Status.NodeRef.Name)
}

// namesake adds a dead etcd member of an earlier machine with the same host name.
func namesake(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.AddEtcdNamesake(ctx, m.Status.NodeRef.Name)
}

// givesUpAfter returns a change of the policy that gives up a replacement that is not created in this time.
func givesUpAfter(d time.Duration) func(*v1alpha1.RepairPolicySpec) {
	return func(s *v1alpha1.RepairPolicySpec) { s.Timeouts.ScaleUp = &v1alpha1.Duration{Duration: d} }
}

// denied makes an admission policy deny the request for new machines, or their creation, for longer than an attempt may
// take. Then it removes the policy.
func denied(resource string, verb admissionv1.OperationType, valid, says string) step {
	return func(ctx context.Context, l *lane) {
		lift := harness.Policy(ctx, l.t, shared.admin, l.Namespace, admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.Namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{verb},
				Rule:       admissionv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{resource}},
			}}},
		}, admissionv1.Validation{Expression: valid})
		harness.Await(ctx, l.t, "it is denied", func() string {
			var err error
			if verb == admissionv1.Update {
				err = shared.admin.Patch(ctx, l.deployment(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.DryRunAll)
			} else {
				another := l.before[0].DeepCopy()
				another.Name, another.ResourceVersion = "another", ""
				err = shared.admin.Create(ctx, another, client.DryRunAll)
			}
			if !apierrors.IsInvalid(err) {
				return fmt.Sprint("the answer is ", err)
			}
			return ""
		})
		to(notReady)(ctx, l)
		harness.Await(ctx, l.t, "it waits for that, acts, or gives up", func() string {
			phase, message := l.says(l.victims[0].Name)
			waits := phase == v1alpha1.RemediationFrozen && strings.Contains(message, says)
			if waits || phase == v1alpha1.RemediationFailed || l.diary == nil && !l.untouched(ctx) {
				return ""
			}
			return fmt.Sprintf("%s: %s", phase, message)
		})
		time.Sleep(30 * time.Second)
		if l.diary != nil {
			r := fresh(ctx, l.t, &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.victims[0].Name}})
			if s := r.Status; s.Phase != v1alpha1.RemediationFrozen || s.Attempts > 1 {
				l.t.Errorf("after %d attempts it says %s: %s", s.Attempts, s.Phase, s.Message)
			}
		}
		harness.Must(l.t, lift(ctx))
	}
}

// slow reports a Node as unhealthy only after some seconds.
func slow(s *v1alpha1.RepairPolicySpec) {
	for i := range s.Checks.UnhealthyNodeConditions {
		s.Checks.UnhealthyNodeConditions[i].Timeout.Duration = 20 * time.Second
	}
}

// alternates changes the Node's Ready condition until the victim is deleted. It changes too often for a check that
// counts from the time of the condition.
func alternates(between ...corev1.ConditionStatus) step {
	return func(ctx context.Context, l *lane) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		l.t.Cleanup(func() { cancel(); <-ended })
		go func() {
			defer close(ended)
			for i := 0; ctx.Err() == nil; i++ {
				now := metav1.Now()
				err := l.SetNodeCondition(ctx, l.victims[0].Status.NodeRef.Name, corev1.NodeCondition{
					Type: corev1.NodeReady, Status: between[i%len(between)], Reason: fmt.Sprint("Reason", i), LastHeartbeatTime: now, LastTransitionTime: now,
				})
				if apierrors.IsNotFound(err) {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(3 * time.Second):
				}
			}
		}()
	}
}
