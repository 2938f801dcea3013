package remediation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"scute.dev/api/v1alpha1"
)

func TestShown(t *testing.T) {
	owners := []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", Controller: new(true)}}
	worker := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w", OwnerReferences: owners}, Spec: clusterv1.MachineSpec{ClusterName: "a"}}
	plane := worker.DeepCopy()
	plane.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	logged := v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSurging, Message: "asked"}
	if diff := cmp.Diff(logged, requestStatus(logged, true, nil, worker)); diff != "" {
		t.Errorf("shown changed the status of the log:\n%s", diff)
	}
	repair := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: "repair"}}
	s := requestStatus(v1alpha1.SurgeRemediationStatus{}, false, repair, plane)
	if s.Phase != v1alpha1.RemediationMarked || s.Policy != "repair" || s.Cluster != "a" {
		t.Errorf("shown = %+v", s)
	}
	s = requestStatus(v1alpha1.SurgeRemediationStatus{}, false, nil, plane)
	if s.Phase != v1alpha1.RemediationUnselected || !strings.Contains(s.Next, "RepairPolicy in namespace fleet") || strings.Contains(s.Next, "workers") {
		t.Errorf("shown = %+v", s)
	}
	if s = requestStatus(v1alpha1.SurgeRemediationStatus{}, false, nil, worker); !strings.Contains(s.Next, "spec.workers") {
		t.Errorf("shown = %+v", s)
	}
	repair.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: "spec.hold", Problem: "it is a list", Raw: []byte("{}")}
	s = requestStatus(v1alpha1.SurgeRemediationStatus{}, false, repair, worker)
	if s.Phase != v1alpha1.RemediationFrozen || s.Policy != "repair" || !strings.Contains(s.Message, "RepairPolicy repair cannot be read: spec.hold") || s.Next == "" {
		t.Errorf("shown = %+v", s)
	}
	orphan := worker.DeepCopy()
	orphan.OwnerReferences = nil
	if s = requestStatus(v1alpha1.SurgeRemediationStatus{}, false, nil, orphan); s.Phase != v1alpha1.RemediationFrozen || !strings.Contains(s.Message, "no owner controls") || s.Next == "" {
		t.Errorf("machine without an owner: shown = %+v", s)
	}
}

func TestEarlierIllnessesAreNotShown(t *testing.T) {
	request := &v1alpha1.SurgeRemediation{}
	request.CreationTimestamp = metav1.Unix(100, 0)
	for _, c := range []struct {
		finished metav1.Time
		want     bool
	}{{metav1.Unix(99, 0), true}, {metav1.Unix(100, 500), true}, {metav1.Unix(101, 0), false}} {
		if got := endedBefore(&v1alpha1.SurgeRemediationStatus{FinishedAt: &c.finished}, request); got != c.want {
			t.Errorf("ended at %d: earlier = %v", c.finished.Unix(), got)
		}
	}
	if endedBefore(&v1alpha1.SurgeRemediationStatus{}, request) {
		t.Error("earlier = true for a remediation in progress")
	}
}

func TestRequestConditions(t *testing.T) {
	for phase, want := range map[v1alpha1.RemediationPhase]string{
		v1alpha1.RemediationMarked: "Reconciling", v1alpha1.RemediationWaiting: "Reconciling", v1alpha1.RemediationHeld: "Reconciling",
		v1alpha1.RemediationEscalating: "Reconciling", v1alpha1.RemediationSurging: "Reconciling", v1alpha1.RemediationReplacing: "Reconciling",
		v1alpha1.RemediationRemoving: "Reconciling", v1alpha1.RemediationCancelling: "Reconciling",
		v1alpha1.RemediationFrozen: "Stalled", v1alpha1.RemediationFailed: "Stalled", v1alpha1.RemediationUnselected: "Stalled", v1alpha1.RemediationCancelled: "Stalled",
		v1alpha1.RemediationSucceeded: "Ready", v1alpha1.RemediationRecovered: "Ready",
	} {
		list := requestConditions(nil, &v1alpha1.SurgeRemediationStatus{Phase: phase, Message: "so it is", Next: "do that"}, 2)
		var got []string
		for _, c := range list {
			if c.Status == metav1.ConditionTrue {
				got = append(got, c.Type)
			}
			if c.Reason != string(phase) || c.ObservedGeneration != 2 {
				t.Errorf("%s: condition = %+v", phase, c)
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", phase, diff)
		}
		if c := meta.FindStatusCondition(list, v1alpha1.ConditionStalled); want == "Stalled" && !strings.Contains(c.Message, "do that") {
			t.Errorf("%s: Stalled has no advice: %s", phase, c.Message)
		}
	}
}

func TestARequestWithoutAMachineSaysSo(t *testing.T) {
	request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "gone", Generation: 2}}
	s := noMachineStatus(request)
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "MachineNotFound" || !strings.Contains(c.Message, "Machine gone does not exist in namespace fleet") {
		t.Errorf("Stalled = %+v", c)
	}
	if s.Next == "" || s.ObservedGeneration != 2 || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReconciling) {
		t.Errorf("status = %+v", s)
	}
}

func TestNews(t *testing.T) {
	unselected := v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationUnselected, Message: "no RepairPolicy selects it", Next: "make one"}
	if got := newNote(&v1alpha1.SurgeRemediationStatus{}, &unselected); got != "no RepairPolicy selects it; next: make one" {
		t.Errorf("note = %q", got)
	}
	if got := newNote(&unselected, &unselected); got != "" {
		t.Errorf("note = %q for an unchanged status", got)
	}
	known := v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationFrozen, RemediationID: "fleet/cp/0a1b2c3d/m"}
	if got := newNote(&unselected, &known); got != "" {
		t.Errorf("note = %q for a status from the log, want none", got)
	}
}

// TestOnlyWhatMattersMakesATurn checks that only changes that decisions depend on trigger a turn, not those of a
// heartbeat.
func TestOnlyWhatMattersMakesATurn(t *testing.T) {
	first := metav1.NewTime(time.Unix(100, 0))
	base := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Generation: 1, Annotations: map[string]string{"a": "1"}}}
	base.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Fine", Message: "1 of 3", LastTransitionTime: first}}
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*clusterv1.Machine)
		turn   bool
	}{
		"a message":                        {func(m *clusterv1.Machine) { m.Status.Conditions[0].Message, m.ResourceVersion = "2 of 3", "2" }, false},
		"a finalizer":                      {func(m *clusterv1.Machine) { m.Finalizers = []string{"f"} }, false},
		"a condition":                      {func(m *clusterv1.Machine) { m.Status.Conditions[0].Status = "False" }, true},
		"a condition that went to and fro": {func(m *clusterv1.Machine) { m.Status.Conditions[0].LastTransitionTime = now }, true},
		"a node":                           {func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }, true},
		"an annotation":                    {func(m *clusterv1.Machine) { m.Annotations = map[string]string{"a": "2"} }, true},
		"a label":                          {func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "2"} }, true},
		"a deletion":                       {func(m *clusterv1.Machine) { m.DeletionTimestamp = &now }, true},
		"another owner":                    {func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
		"a change of specs":                {func(m *clusterv1.Machine) { m.Generation = 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := base.DeepCopy()
			c.change(after)
			if got := updatedIf(machineDiffers).Update(event.TypedUpdateEvent[*clusterv1.Machine]{ObjectOld: base, ObjectNew: after}); got != c.turn {
				t.Errorf("Update = %v", got)
			}
		})
	}
}
