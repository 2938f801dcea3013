package healthcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
)

// The checks of KubeadmControlPlane itself before it deletes a machine and before it creates one. preflightChecks runs
// checkHealthiness or checkHealthinessWhileRemediationInProgress if no machine is being deleted. It is not linked
// itself, because it returns a type that cannot be named here.

//go:linkname canSafelyRemediateMachine sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane.(*Reconciler).canSafelyRemediateMachine
func canSafelyRemediateMachine(*kubeadmcontrolplane.Reconciler, context.Context, *pkg.ControlPlane, *clusterv1.Machine) bool //nolint:revive // its receiver comes first

//go:linkname checkHealthiness sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane.(*Reconciler).checkHealthiness
func checkHealthiness(*kubeadmcontrolplane.Reconciler, context.Context, *pkg.ControlPlane, []*clusterv1.Machine) (components, etcd bool, err error) //nolint:revive // its receiver comes first

//go:linkname checkHealthinessWhileRemediationInProgress sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane.(*Reconciler).checkHealthinessWhileRemediationInProgress
func checkHealthinessWhileRemediationInProgress(*kubeadmcontrolplane.Reconciler, context.Context, *pkg.ControlPlane) (components, etcd bool, err error) //nolint:revive // its receiver comes first

// TestAsTheOwner compares decisions about an unhealthy machine of a random control plane with what KubeadmControlPlane
// itself would do. KubeadmControlPlane must be able to do what it is asked for. If scute waits although
// KubeadmControlPlane would delete the machine, the result must not be worse: another machine is replaced first, the
// owner continues by itself, or the deletion would leave the control plane incomplete.
func TestAsTheOwner(t *testing.T) {
	verdicts := make(map[remediator.Verdict]int)
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			w := drawControlPlane(rt)
			d := w.decision()
			if first := w.first(); !acts(d) && first != w.victim { // the owner would choose that one first
				w.victim = first
				d = w.decision()
			}
			verdicts[d.Verdict]++
			deletes, why := w.deletes()
			switch {
			case d.Verdict == remediator.OwnerRemediation && !deletes:
				rt.Fatalf("handed over by %s: %s; the owner refuses: %s\n%s", d.Rule, d.Reason, why, w)
			case d.Verdict != remediator.OwnerRemediation && acts(d):
				if why := w.makes(d.Relaxed); why != "" {
					rt.Fatalf("%s (relaxed %t) by %s: %s; the owner refuses: %s\n%s", d.Verdict, d.Relaxed, d.Rule, d.Reason, why, w)
				}
			case !acts(d) && deletes:
				another := d.Rule == "" || d.Rule == "one-at-a-time"
				continues := (d.Rule == "rollout" || d.Rule == "scaling") && w.makes(false) == ""
				if !another && !continues && w.stays() == "" {
					rt.Fatalf("%s by %s: %s; the owner would delete the machine and create another\n%s", d.Verdict, d.Rule, d.Reason, w)
				}
			}
		}
	})
	t.Log(verdicts)
	for _, verdict := range []remediator.Verdict{remediator.OwnerRemediation, remediator.Surge, remediator.RolloutSurge, remediator.Wait, remediator.Freeze, remediator.CannotRemediate} {
		if verdicts[verdict] == 0 {
			t.Errorf("no decision %s", verdict)
		}
	}
}

// namesake is the ID of a dead member with the name of another member.
const namesake = 98

// controlPlaneWorld is a control plane with one unhealthy machine.
type controlPlaneWorld struct {
	kcp      *controlplanev1.KubeadmControlPlane
	cluster  *clusterv1.Cluster
	machines []*clusterv1.Machine
	victim   *clusterv1.Machine
	members  []*etcd.Member
	answers  map[uint64]bool
	byQuorum bool // etcd accepts a new member if a majority, including the new one, is connected
	now      time.Time
	policy   remediator.Policy
}

var healthy = []string{
	controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
	controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
	controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
	controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
	controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
}

func drawControlPlane(t *rapid.T) *controlPlaneWorld {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	oneIn := func(n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == 1 }
	w := &controlPlaneWorld{now: now, answers: make(map[uint64]bool)}
	meta := metav1.ObjectMeta{Namespace: "fleet", Name: "c", UID: "c"}
	w.cluster = &clusterv1.Cluster{ObjectMeta: meta}
	w.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue}, {Type: clusterv1.ClusterInfrastructureReadyCondition, Status: metav1.ConditionTrue}}
	n := rapid.SampledFrom([]int32{1, 2, 3, 3, 3, 4, 5, 5}).Draw(t, "machines")
	wanted := n
	if oneIn(8, "scaling") {
		wanted = rapid.Int32Range(1, 5).Draw(t, "replicas")
	}
	w.kcp = &controlplanev1.KubeadmControlPlane{ObjectMeta: meta, Spec: controlplanev1.KubeadmControlPlaneSpec{Replicas: &wanted, Version: "v1.36.0"}}
	w.kcp.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	initialized := !oneIn(8, "new")
	w.kcp.Status.Initialization.ControlPlaneInitialized = &initialized
	if !initialized {
		n, w.cluster.Status.Conditions = 1, w.cluster.Status.Conditions[1:]
	}
	w.kcp.Status.Conditions = []metav1.Condition{{Type: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, Status: metav1.ConditionTrue}}
	if oneIn(8, "external") {
		w.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd.example.org:2379"}}
	}
	if rapid.Bool().Draw(t, "certificates") {
		w.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 7
	}
	external := w.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
	for i := range n {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: fmt.Sprintf("m%d", i), UID: types.UID(fmt.Sprintf("m%d", i)), CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(24+i) * time.Hour)),
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
		}, Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.0"}}
		if oneIn(60, "old version") {
			m.Spec.Version = "v1.35.0"
		}
		w.machines = append(w.machines, m)
		if !initialized || oneIn(8, "no node") {
			w.set(m, clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown)
			continue
		}
		m.Status.NodeRef.Name = "node-" + m.Name
		w.set(m, clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)
		for _, c := range healthy[:3] {
			w.set(m, c, w.truth(t, c))
		}
		if external {
			continue
		}
		w.set(m, healthy[3], w.truth(t, healthy[3]))
		id := uint64(i) + 1 //nolint:gosec // small
		if oneIn(60, "no member") {
			for _, c := range []string{healthy[0], healthy[3], healthy[4]} { // a removed member stops, and with it its API server
				w.set(m, c, metav1.ConditionFalse)
			}
			continue
		}
		w.answers[id] = !oneIn(8, "silent")
		w.members = append(w.members, &etcd.Member{ID: id, Name: m.Status.NodeRef.Name, IsLearner: oneIn(60, "learner")})
		status := metav1.ConditionTrue
		if last := w.members[len(w.members)-1]; !w.answers[id] || last.IsLearner {
			status = metav1.ConditionFalse
		}
		if oneIn(8, "unknown") {
			status = metav1.ConditionUnknown
		}
		w.set(m, healthy[4], status)
	}
	w.byQuorum = rapid.Bool().Draw(t, "etcd from 3.6.11")
	if named := w.machines[0].Status.NodeRef.Name; named != "" && !external && oneIn(8, "two of one name") {
		w.members = append(w.members, &etcd.Member{ID: namesake, Name: named})
	}
	if initialized && !external && oneIn(8, "stray") {
		w.members = append(w.members, &etcd.Member{ID: 99, Name: rapid.SampledFrom([]string{"node-gone", "node-gone", ""}).Draw(t, "stray name"), IsLearner: rapid.Bool().Draw(t, "learner")})
		w.answers[99] = w.members[len(w.members)-1].Name != "" && rapid.Bool().Draw(t, "stray answers")
	}
	w.victim = w.machines[rapid.IntRange(0, int(n)-1).Draw(t, "victim")]
	if w.victim.Status.NodeRef.IsDefined() {
		w.set(w.victim, clusterv1.MachineNodeReadyCondition, metav1.ConditionFalse)
	}
	w.policy = observe.Policy(&v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "p"}})
	w.policy.Checks.NodeStartup = 10 * time.Minute
	w.policy.Checks.Node = []remediator.Check{{Type: "Ready", Status: object.False, Timeout: time.Minute}}
	w.policy.Limits.MassFailure.Floor = 99
	w.policy.AllowsDeleteFirst = rapid.Bool().Draw(t, "accepts delete first")
	if rapid.Bool().Draw(t, "some methods") {
		w.policy.Methods = make(map[v1alpha1.RepairMethod]bool)
		for _, method := range []v1alpha1.RepairMethod{v1alpha1.MethodRolloutSurge, v1alpha1.MethodSurge, v1alpha1.MethodRelaxedSurge, v1alpha1.MethodOwnerRemediation} {
			w.policy.Methods[method] = rapid.Bool().Draw(t, string(method))
		}
		w.policy.Methods[v1alpha1.MethodOwnerRemediation] = true
	}
	return w
}

func (*controlPlaneWorld) truth(t *rapid.T, what string) metav1.ConditionStatus {
	return rapid.SampledFrom([]metav1.ConditionStatus{"True", "True", "True", "True", "True", "True", "True", "True", "True", "False", "Unknown"}).Draw(t, what)
}

// set sets a condition with a time one day ago.
func (w *controlPlaneWorld) set(m *clusterv1.Machine, kind string, status metav1.ConditionStatus) {
	m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Reason", LastTransitionTime: metav1.NewTime(w.now.Add(-24 * time.Hour))})
}

// decision returns scute's decision about the victim, or the zero value if another machine comes first.
func (w *controlPlaneWorld) decision() (last remediator.Decision) {
	owner, _ := ownerkind.As(w.kcp)
	f := &remediator.Facts{Policy: w.policy, Cluster: remediator.ClusterFacts{Found: true, UID: "c", Reachable: object.True}}
	f.Cluster.Initialized = *w.kcp.Status.Initialization.ControlPlaneInitialized
	f.Owner = remediator.OwnerFacts{Owner: owner.Owner(), Found: true, Replicas: *w.kcp.Spec.Replicas, Observed: true, MaxSurge: 1, Tested: true}
	owner.Fill(&f.Owner, ownerkind.Children{Machines: w.machines})
	for _, m := range w.machines {
		f.Machines = append(f.Machines, observe.Facts(m, w.cluster, true))
	}
	f.Etcd = &remediator.Etcd{AddsByQuorum: w.byQuorum}
	for _, m := range w.members {
		of := remediator.Member{Node: m.Name, Learner: m.IsLearner, Answers: map[bool]object.ConditionStatus{true: object.True, false: object.False}[w.answers[m.ID]]}
		if m.Name == "" { // it has not started, as in observe.mergeAnswers
			of.Node, of.Unstarted = "member 99", true
		}
		if m.ID == namesake {
			of.Node, of.Namesake = "another "+m.Name, m.Name
		}
		f.Etcd.Members = append(f.Etcd.Members, of)
	}
	s := &remediator.State{}
	for _, now := range []time.Time{w.now, w.now.Add(time.Hour)} { // a wait may have a bound
		for events := remediator.Decide(s, f, now); len(events) > 0; events = remediator.Decide(s, f, now) {
			for _, e := range events {
				if d, ok := e.(remediator.Decided); ok && d.Machine.UID == w.victim.UID {
					if last = d.Decision; acts(last) {
						return last
					}
				}
				s.Apply(e, now)
			}
		}
	}
	return last
}

// first returns the machine that the owner would choose among the victim and those that never joined
// (getMachineToBeRemediated).
func (w *controlPlaneWorld) first() *clusterv1.Machine {
	first := w.victim
	for _, m := range w.machines {
		if !m.Status.NodeRef.IsDefined() && (first.Status.NodeRef.IsDefined() || m.CreationTimestamp.Before(&first.CreationTimestamp)) {
			first = m
		}
	}
	return first
}

func acts(d remediator.Decision) bool {
	return slices.Contains([]remediator.Verdict{remediator.OwnerRemediation, remediator.Surge, remediator.RolloutSurge}, d.Verdict)
}

func (w *controlPlaneWorld) controlPlane() *pkg.ControlPlane {
	cp := &pkg.ControlPlane{KCP: w.kcp.DeepCopy(), Cluster: w.cluster, Machines: collections.FromMachines(w.machines...), EtcdMembers: w.members}
	if voters, answering := w.voters(); answering < voters/2+1 { // then no member can list the members
		cp.EtcdMembers = nil
	}
	return cp
}

// deletes reports whether the owner would delete the victim if it was asked to, and if not, why. The order is that of
// its reconcileUnhealthyMachines.
func (w *controlPlaneWorld) deletes() (ok bool, why string) {
	w.set(w.victim, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)
	w.set(w.victim, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse)
	for _, m := range w.machines { // scute reports those too, as a MachineHealthCheck does
		if !m.Status.NodeRef.IsDefined() {
			w.set(m, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)
		}
	}
	cp := w.controlPlane()
	switch {
	case !*w.kcp.Status.Initialization.ControlPlaneInitialized:
		return true, ""
	case len(cp.Machines) <= 1:
		return false, "one machine"
	case cp.HasHealthyMachineStillProvisioning():
		return false, "a healthy machine is provisioning"
	case cp.HasDeletingMachine():
		return false, "a machine is being deleted"
	case len(cp.EtcdMembers) == 0:
		return false, "no list of members"
	case !canSafelyRemediateMachine(&kubeadmcontrolplane.Reconciler{}, quiet(), cp, w.victim):
		return false, "canSafelyRemediateMachine"
	}
	return true, ""
}

// makes returns why the owner would not create a machine, or "".
func (w *controlPlaneWorld) makes(relaxed bool) string {
	check := func() error {
		_, _, err := checkHealthiness(&kubeadmcontrolplane.Reconciler{}, quiet(), w.controlPlane(), nil)
		return err
	}
	if relaxed {
		check = func() error {
			_, _, err := checkHealthinessWhileRemediationInProgress(&kubeadmcontrolplane.Reconciler{}, quiet(), w.controlPlane())
			return err
		}
	}
	if err := check(); err != nil {
		return err.Error()
	}
	return ""
}

// stays returns why the control plane would remain one machine short if the owner deleted the victim, or "".
func (w *controlPlaneWorld) stays() string {
	after := *w
	after.machines = slices.DeleteFunc(slices.Clone(w.machines), func(m *clusterv1.Machine) bool { return m == w.victim })
	after.members = slices.DeleteFunc(slices.Clone(w.members), func(m *etcd.Member) bool { return m.Name == w.victim.Status.NodeRef.Name })
	voters, answering := after.voters()
	all, alive := w.voters()
	twice := slices.ContainsFunc(w.members, func(m *etcd.Member) bool { return m.ID == namesake && m.Name == w.victim.Status.NodeRef.Name })
	switch {
	case twice && alive-1 < (all-1)/2+1:
		return "quorum would be lost if the owner removed the one of that name that answers before the dead one"
	case w.victim.Status.NodeRef.IsDefined() && !slices.ContainsFunc(after.machines, after.serves):
		return "no other machine would serve"
	case len(after.controlPlane().EtcdMembers) == 0:
		return "quorum would be lost"
	case answering < voters && !(w.byQuorum && answering >= (voters+1)/2+1):
		return "etcd accepts no new member beside one that is not connected"
	default:
		return after.makes(true)
	}
}

func (w *controlPlaneWorld) voters() (voters, answering int) {
	for _, m := range w.members {
		if !m.IsLearner {
			voters++
			if w.answers[m.ID] {
				answering++
			}
		}
	}
	return voters, answering
}

// serves reports whether the pods of a machine are healthy, and its etcd member answers.
func (w *controlPlaneWorld) serves(m *clusterv1.Machine) bool {
	well := !slices.ContainsFunc(healthy[:4], func(kind string) bool { return !conditions.IsTrue(m, kind) })
	return well && slices.ContainsFunc(w.members, func(of *etcd.Member) bool { return of.Name == m.Status.NodeRef.Name && w.answers[of.ID] })
}

func quiet() context.Context { return ctrl.LoggerInto(context.Background(), logr.Discard()) }

func (w *controlPlaneWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas %d, external %t, methods %v\n", *w.kcp.Spec.Replicas, w.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined(), w.policy.Methods)
	for _, m := range w.machines {
		fmt.Fprintf(&b, "%s node %q version %s", m.Name, m.Status.NodeRef.Name, m.Spec.Version)
		for _, c := range m.Status.Conditions {
			fmt.Fprintf(&b, " %s=%s", c.Type, c.Status)
		}
		b.WriteString("\n")
	}
	for _, m := range w.members {
		fmt.Fprintf(&b, "member %d %s learner %t answers %t\n", m.ID, m.Name, m.IsLearner, w.answers[m.ID])
	}
	return b.String() + "victim " + w.victim.Name
}
