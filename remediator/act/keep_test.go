package act

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// worker of a MachineSet, which selects it by its labels.
func worker() (*clusterv1.Machine, []client.Object) {
	selected := map[string]string{clusterv1.ClusterNameLabel: "blue", clusterv1.MachineSetNameLabel: "set"}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "set", UID: "set-uid"}}
	set.Spec.Selector.MatchLabels = selected
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "m", UID: "m-uid", Labels: maps.Clone(selected), Finalizers: []string{clusterv1.MachineFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "set", UID: "set-uid", Controller: new(true)}},
	}}
	m.Labels["team"] = "a"
	return m, []client.Object{m, set, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "blue"}}}
}

// perform does actions on the machine one after the other, and returns what it is then.
func perform(t *testing.T, objects []client.Object, kind string, deletes bool, actions ...remediator.ActionType) (*clusterv1.Machine, error) {
	t.Helper()
	ctx, scheme := context.Background(), runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	owner := remediator.Owner{Kind: kind, Namespace: "fleet", Name: "set", UID: "set-uid", Cluster: "blue"}
	facts := &remediator.Facts{Owner: remediator.OwnerFacts{Owner: owner}}
	m := &clusterv1.Machine{}
	var failed error
	for _, a := range actions {
		if a == remediator.SetApart && deletes {
			if err := c.Delete(ctx, objects[0]); err != nil {
				t.Fatal(err)
			}
		}
		failed = (&Executor{Client: c}).Perform(ctx, facts, remediator.Action{Type: a, Machine: remediator.Subject{Name: "m", UID: "m-uid"}, Value: (24 * time.Hour).String()})
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "m"}, m); err != nil {
		t.Fatal(err)
	}
	return m, failed
}

// TestKeep: the hook and the note are written together, and taken off together where nobody deletes the machine. One that is kept loses
// the labels by which it is counted, and no others.
func TestKeep(t *testing.T) {
	m, objects := worker()
	kept, err := perform(t, objects, "MachineSet", false, remediator.KeepMachine)
	if _, noted := remediator.KeepNoteOf(kept.Annotations); err != nil || kept.Annotations[remediator.KeepHook] != "24h0m0s" || !noted {
		t.Errorf("%v: %v", err, kept.Annotations)
	}
	spared, err := perform(t, objects, "MachineSet", false, remediator.KeepMachine, remediator.ReleaseMachine)
	if err != nil || len(spared.Annotations) > 0 {
		t.Errorf("%v: %v", err, spared.Annotations)
	}
	apart, err := perform(t, objects, "MachineSet", true, remediator.KeepMachine, remediator.SetApart, remediator.SetApart)
	note, _ := remediator.KeepNoteOf(apart.Annotations)
	if err != nil || !has(apart, remediator.KeepHook) || !note.Apart || note.Owner.UID != "set-uid" ||
		!maps.Equal(note.Labels, map[string]string{clusterv1.MachineSetNameLabel: "set"}) ||
		!maps.Equal(apart.Labels, map[string]string{clusterv1.ClusterNameLabel: "blue", "team": "a"}) {
		t.Errorf("%v: %v, %v", err, apart.Annotations, apart.Labels)
	}
	released, err := perform(t, objects, "MachineSet", true, remediator.KeepMachine, remediator.SetApart, remediator.ReleaseMachine, remediator.KeepMachine)
	if err != nil || has(released, remediator.KeepHook) || !has(released, object.KeptAnnotation) {
		t.Errorf("%v: %v", err, released.Annotations)
	}
	m.Annotations = map[string]string{remediator.KeepHook: "mine"}
	if theirs, err := perform(t, objects, "MachineSet", false, remediator.ReleaseMachine); err != nil || !has(theirs, remediator.KeepHook) {
		t.Errorf("a hook without scute's note: %v: %v", err, theirs.Annotations)
	}
}

// A machine whose MachineSet selects it by its cluster alone cannot be set apart: it is released.
func TestKeepWithoutLabels(t *testing.T) {
	_, objects := worker()
	set := objects[slices.IndexFunc(objects, func(o client.Object) bool { return o.GetName() == "set" })].(*clusterv1.MachineSet) //nolint:forcetypeassert // it is one
	set.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: "blue"}
	if m, err := perform(t, objects, "MachineSet", true, remediator.KeepMachine, remediator.SetApart); err != nil || has(m, remediator.KeepHook) {
		t.Errorf("%v: %v", err, m.Annotations)
	}
}

// TestKeepWithExpressions: a MachineSet may select by more than labels that have a value. A machine that it would still count is released.
func TestKeepWithExpressions(t *testing.T) {
	for name, c := range map[string]struct {
		by   metav1.LabelSelectorRequirement
		kept bool
	}{
		"one of several values": {metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}, true},
		"any value":             {metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpExists}, true},
		"no label":              {metav1.LabelSelectorRequirement{Key: "spare", Operator: metav1.LabelSelectorOpDoesNotExist}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, objects := worker()
			set := objects[slices.IndexFunc(objects, func(o client.Object) bool { return o.GetName() == "set" })].(*clusterv1.MachineSet) //nolint:forcetypeassert // it is one
			set.Spec.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{c.by}}
			m, err := perform(t, objects, "MachineSet", true, remediator.KeepMachine, remediator.SetApart)
			if selector, bad := metav1.LabelSelectorAsSelector(&set.Spec.Selector); err != nil || bad != nil || has(m, remediator.KeepHook) != c.kept || c.kept && selector.Matches(labels.Set(m.Labels)) {
				t.Errorf("%v, %v: %v, %v", err, bad, m.Annotations, m.Labels)
			}
		})
	}
}

// The hook is never put on a machine of a control plane, whatever was decided: its member of etcd would vote until it is gone.
func TestKeepsNoControlPlane(t *testing.T) {
	m, objects := worker()
	m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	if got, err := perform(t, objects, "MachineSet", false, remediator.KeepMachine); err == nil || len(got.Annotations) > 0 {
		t.Errorf("%v: %v", err, got.Annotations)
	}
}
