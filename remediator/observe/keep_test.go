package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const keptNote = `{"owner":{"kind":"MachineDeployment","namespace":"elsewhere","name":"md","uid":"md-uid"},"apart":true}`

// TestKeepOf: scute's hook is known by its note, and holds nothing back in the eyes of allowedHooks. Without the note it is somebody
// else's.
func TestKeepOf(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{remediator.KeepHook: "24h"}}}
	if f := machine(m); f.Keep != (remediator.Keep{}) || cmp.Diff([]string{"pre-terminate/scute-forensics"}, f.Hooks) != "" {
		t.Errorf("without the note: %+v, hooks %v", f.Keep, f.Hooks)
	}
	m.Annotations[object.KeptAnnotation] = keptNote
	if f := machine(m); f.Keep != (remediator.Keep{Noted: true, Hook: true, Value: "24h", Apart: true}) || len(f.Hooks) > 0 {
		t.Errorf("with it: %+v, hooks %v", f.Keep, f.Hooks)
	}
	m.Status.Deletion = &clusterv1.MachineDeletionStatus{WaitForPreTerminateHookStartTime: since}
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason}}
	if f := machine(m); !f.Keep.Since.Equal(since.Time) {
		t.Errorf("it waits: %+v", f.Keep)
	}
	m.Annotations[object.KeptAnnotation] = "{"
	if f := machine(m); !f.Keep.Noted || f.Keep.Apart {
		t.Errorf("a note that cannot be read: %+v", f.Keep)
	}
}

// A machine that is kept is found by the owner in its note, also when its MachineSet is gone.
func TestOwnerOfKept(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Annotations: map[string]string{object.KeptAnnotation: keptNote},
		OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: "gone", UID: "gone-uid", Controller: new(true)}},
	}}
	m.Spec.ClusterName = "blue"
	owner, ok, err := (&Observer{}).OwnerOf(t.Context(), m)
	if want := (remediator.Owner{Kind: "MachineDeployment", Namespace: "fleet", Name: "md", UID: "md-uid", Cluster: "blue"}); !ok || err != nil || owner != want {
		t.Errorf("%+v, %t, %v", owner, ok, err)
	}
	if diff := cmp.Diff([]string{"gone-uid", "md-uid"}, controllerUID(m)); diff != "" {
		t.Error(diff)
	}
}

// A machine that is set apart is no machine of its owner any more, and neither is one that is found by its note alone; one that is only
// about to be kept is. None is there twice.
func TestLookAtKept(t *testing.T) {
	now := metav1.Now()
	of := func(name, controller, note string, deleting bool) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: types.UID(controller), Controller: new(true)}}
		if note != "" {
			m.Annotations = map[string]string{object.KeptAnnotation: note}
		}
		if deleting {
			m.DeletionTimestamp = &now
		}
		return m
	}
	l := &look{facts: &remediator.Facts{}}
	for _, m := range []*clusterv1.Machine{
		of("well", "set", "", false), of("going", "set", "", true), of("to-be-kept", "set", "{}", false), of("drained", "set", "{}", true),
		of("apart", "set", keptNote, true), of("alone", "gone", "{}", true),
	} {
		l.add(m, []string{"md", "set"})
		l.add(m, []string{"md", "set"})
	}
	var machines, kept []string
	for _, m := range l.found {
		machines = append(machines, m.Name)
	}
	for i := range l.facts.Kept {
		kept = append(kept, l.facts.Kept[i].Name)
	}
	if diff := cmp.Diff([][]string{{"well", "going", "to-be-kept", "drained"}, {"apart", "alone"}}, [][]string{machines, kept}); diff != "" {
		t.Error(diff)
	}
}
