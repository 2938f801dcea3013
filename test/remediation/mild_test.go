package remediation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// aborted checks that an operator can abort a remediation that blocks a move. The machine is not remediated again until
// it is released.
func aborted(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{ControlPlanes: 1}, methods(v1alpha1.MethodSurge))
	release := w.stuckNewMachines(t)
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	w.count(ctx, t, 2)
	w.misread(ctx, t)
	if why := w.moves(ctx, t, "mid-surge"); !strings.Contains(why, "machine "+w.victim.Name+" has begun") || !strings.Contains(why, "abort remediation "+w.victim.Name) {
		t.Errorf("refusal of a move during a surge = %q, want the begun machine and the command to abort", why)
	}
	say := func(what string) {
		request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.victim.Name}}
		harness.Must(t, shared.admin.Patch(ctx, request, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"abort":`+what+`}}`))))
	}
	say("true")
	w.phase(ctx, t, v1alpha1.RemediationWaiting, "an operator aborted it")
	w.stays(ctx, t)
	if why := w.moves(ctx, t, "afterwards"); why != "" {
		t.Errorf("refusal of a move after the remediation = %q, want none about the control plane", why)
	}
	release()
	say("null")
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 1, 2)
}

// misread makes the policy invalid for a while. A remediation that has begun is frozen, and continues when the policy
// is corrected.
func (w *ward) misread(ctx context.Context, t *testing.T) {
	t.Helper()
	change(ctx, t, w.policy, func(s *v1alpha1.RepairPolicySpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	})
	w.phase(ctx, t, v1alpha1.RemediationFrozen, "RepairPolicy "+w.policy.Name+" cannot be read: spec.selector")
	change(ctx, t, w.policy, func(s *v1alpha1.RepairPolicySpec) { s.Selector.MatchExpressions = nil })
	w.phase(ctx, t, v1alpha1.RemediationReplacing)
}

// moves creates a Move without a target, and returns the part of its refusal that is about the control plane and its
// machines.
func (w *ward) moves(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	m.Spec.Selection.Clusters = []string{w.Name}
	m.Spec.Target.KubeconfigSecretRef.Name = "nowhere"
	harness.Must(t, shared.admin.Create(ctx, m))
	harness.Await(ctx, t, "the move is refused", func() string {
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(m), m))
		if m.Status.FinishedAt == nil {
			return "its phase is " + string(m.Status.Phase)
		}
		return ""
	})
	var found []string
	for _, f := range m.Status.Findings {
		if f.Severity == "Error" && (strings.HasPrefix(f.Field, "KubeadmControlPlane.") || strings.HasPrefix(f.Field, "Machine.")) {
			found = append(found, f.Field+": "+f.Message+": "+f.Remedy)
		}
	}
	return strings.Join(found, "\n")
}

// reboot returns a change of the policy that adds a reboot as an escalation step. The test answers it as a machine's
// console would.
func reboot(timeout time.Duration) func(*v1alpha1.RepairPolicySpec) {
	return func(s *v1alpha1.RepairPolicySpec) {
		s.Escalation = []v1alpha1.EscalationStep{{
			Name: "reboot", Timeout: v1alpha1.Duration{Duration: timeout},
			Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"holderIdentity":"${node}"}}`)},
		}}
	}
}

// console watches the requests to reboot the victim's machine, so that even a short one is seen.
type console struct {
	w      *ward
	events watch.Interface
}

func (w *ward) console(ctx context.Context, t *testing.T) *console {
	t.Helper()
	events, err := shared.admin.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(w.Namespace))
	harness.Must(t, err)
	t.Cleanup(events.Stop)
	return &console{w, events}
}

// asked waits until a reboot of the victim is requested, or until the request is deleted.
func (c *console) asked(ctx context.Context, t *testing.T, want watch.EventType) {
	t.Helper()
	for {
		select {
		case <-ctx.Done():
			phase, message := c.w.diary.now(c.w.victim.Name)
			t.Fatalf("timed out waiting until the reboot request is %s: %v: %s: %s", want, ctx.Err(), phase, message)
		case e, open := <-c.events.ResultChan():
			if !open {
				t.Fatal("the watch of reboot requests ended")
			}
			lease, ok := e.Object.(*coordinationv1.Lease)
			if !ok || lease.Name != remediator.StepObjectName(c.w.victim.Name, "reboot") {
				continue
			}
			if node := *lease.Spec.HolderIdentity; node != c.w.victim.Status.NodeRef.Name {
				t.Errorf("reboot requested for node %s", node)
			}
			if e.Type == want {
				return
			}
		}
	}
}

// rebooted checks that nothing is replaced if the reboot helps.
func rebooted(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, reboot(10*time.Minute))
	console := w.console(ctx, t)
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	console.asked(ctx, t, watch.Added)
	w.phase(ctx, t, v1alpha1.RemediationEscalating, "reboot")
	harness.Must(t, wellAgain(ctx, w.cluster, w.victim))
	console.asked(ctx, t, watch.Deleted)
	w.stays(ctx, t)
	w.healed(ctx, t)
	w.olderKept(ctx, t)
	w.quorum.never(t, 3, 3)
}

// rebootedInVain checks that the machine is replaced, and the reboot request deleted, if the reboot does not help in
// time.
func rebootedInVain(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, reboot(3*time.Second))
	console := w.console(ctx, t)
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	console.asked(ctx, t, watch.Added)
	console.asked(ctx, t, watch.Deleted)
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}

// machineSet checks that a MachineSet without a MachineDeployment is an owner.
func machineSet(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 1, Workers: 1})
	sets := &clusterv1.MachineSetList{}
	harness.Must(t, shared.admin.List(ctx, sets, client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}))
	if len(sets.Items) != 1 {
		t.Fatalf("%d MachineSets, want 1", len(sets.Items))
	}
	// Otherwise the MachineDeployment would adopt the MachineSet.
	harness.Must(t, shared.admin.DeleteAllOf(ctx, &clusterv1.MachineDeployment{}, client.InNamespace(c.Namespace)))
	harness.Await(ctx, t, "the MachineDeployment is gone", func() string {
		left := &clusterv1.MachineDeploymentList{}
		harness.Must(t, shared.admin.List(ctx, left, client.InNamespace(c.Namespace)))
		if len(left.Items) > 0 {
			return "it is there"
		}
		return ""
	})
	labels := map[string]string{clusterv1.ClusterNameLabel: c.Name, "test.scute.dev/set": "lone"}
	lone := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lone", Labels: labels}, Spec: *sets.Items[0].Spec.DeepCopy()}
	lone.Spec.Replicas, lone.Spec.Selector = new(int32(2)), metav1.LabelSelector{MatchLabels: labels}
	lone.Spec.Template.Labels = labels
	harness.Must(t, shared.admin.Create(ctx, lone))
	list := func() []clusterv1.Machine {
		all := &clusterv1.MachineList{}
		harness.Must(t, shared.admin.List(ctx, all, client.InNamespace(c.Namespace), client.MatchingLabels(labels)))
		return all.Items
	}
	running := func(but types.UID) string {
		now := list()
		for i := range now {
			if now[i].UID == but {
				return now[i].Name + " is there"
			}
			if now[i].Status.Phase != string(clusterv1.MachinePhaseRunning) {
				return now[i].Name + " is " + now[i].Status.Phase
			}
		}
		if len(now) != 2 {
			return fmt.Sprintf("%d machines", len(now))
		}
		return ""
	}
	harness.Await(ctx, t, "its machines run", func() string { return running("") })
	d := keepDiary(t, c.Namespace)
	policy(ctx, t, c.Namespace, workers)
	before := list()
	harness.Must(t, notReady(ctx, c, &before[0]))
	harness.Await(ctx, t, "the victim is replaced", func() string { return running(before[0].UID) })
	c.calm(ctx, t)
	for _, m := range list() {
		if owner := metav1.GetControllerOf(&m); owner == nil || owner.Kind != "MachineSet" || owner.Name != lone.Name {
			t.Errorf("owner of %s = %v, want the MachineSet", m.Name, owner)
		}
	}
	if !d.decided(before[0].Name, "Surge") {
		t.Error("no decision Surge")
	}
	if len(list()) != 2 || list()[0].UID != before[1].UID && list()[1].UID != before[1].UID {
		t.Error("the older machine was deleted")
	}
}
