package act

import (
	"errors"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/remediator"
)

// worker returns a Machine with its MachineSet, which selects it by its labels, and its Cluster.
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

// TestPausedSinceTheLook checks that a MachineDeployment that was paused after its facts were read, by annotation or
// spec, is not scaled up. Scaling back is still allowed.
func TestPausedSinceTheLook(t *testing.T) {
	for name, c := range map[string]struct {
		pause   func(*clusterv1.MachineDeployment)
		to      int32
		refused bool
	}{
		"not paused":        {func(*clusterv1.MachineDeployment) {}, 4, false},
		"by its annotation": {func(d *clusterv1.MachineDeployment) { annotate(d, clusterv1.PausedAnnotation, "true") }, 4, true},
		"by its spec":       {func(d *clusterv1.MachineDeployment) { d.Spec.Paused = new(true) }, 4, true},
		"by its spec, back": {func(d *clusterv1.MachineDeployment) { d.Spec.Paused = new(true) }, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clusterv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "md", UID: "md-uid"}}
			d.Spec.Replicas = new(int32(3))
			c.pause(d)
			m, _ := worker()
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(d, m, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "blue"}}).Build()
			facts := &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Kind: "MachineDeployment", Namespace: "fleet", Name: "md", UID: "md-uid", Cluster: "blue"}}}
			err := (&Executor{Client: live}).Perform(t.Context(), facts, remediator.Action{
				Type: remediator.Scale, Machine: remediator.Subject{Name: m.Name, UID: m.UID}, Where: remediator.AtOwner, Replicas: c.to, Expect: 3,
			})
			if refused := errors.Is(err, ErrPreconditionFailed); refused != c.refused || err != nil && !refused {
				t.Errorf("Perform = %v", err)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if scaled := *d.Spec.Replicas == c.to; scaled == c.refused {
				t.Errorf("got %d replicas", *d.Spec.Replicas)
			}
		})
	}
}
