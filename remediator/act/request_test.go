package act

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// TestRequestIsDroppedAsItWasSeen checks that the request of a healthy machine is not deleted if an operator has
// changed it since it was read.
func TestRequestIsDroppedAsItWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		says  v1alpha1.SurgeRemediationSpec
		value string
		stays bool
	}{
		"nothing":        {},
		"a hold":         {says: v1alpha1.SurgeRemediationSpec{Hold: &v1alpha1.RemediationHold{Reason: "disk"}}, stays: true},
		"an abort":       {says: v1alpha1.SurgeRemediationSpec{Abort: true}, stays: true},
		"what was seen":  {says: v1alpha1.SurgeRemediationSpec{Abort: true}, value: `{"abort":true}`},
		"what was taken": {value: `{"abort":true}`, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			m, objects := worker()
			request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{
				Namespace: m.Namespace, Name: m.Name, Finalizers: []string{RequestFinalizer}, OwnerReferences: []metav1.OwnerReference{machineReference(m)},
			}, Spec: c.says}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, request)...).Build()
			facts := &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Kind: "MachineSet", Namespace: "fleet", Name: "set", UID: "set-uid", Cluster: "blue"}}}
			err := (&Executor{Client: live}).Perform(t.Context(), facts, remediator.Action{
				Type: remediator.DeleteRequest, Machine: remediator.Subject{Name: m.Name, UID: m.UID}, Value: c.value,
			})
			if refused := errors.Is(err, ErrPreconditionFailed); refused != c.stays || err != nil && !refused {
				t.Errorf("Perform = %v", err)
			}
			err = live.Get(t.Context(), client.ObjectKeyFromObject(request), request)
			if stays := err == nil; stays != c.stays || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("the request exists: %t, %v", stays, err)
			}
		})
	}
}

// TestTakenBack checks that removing the hold or the abort from a request is noticed. A request that cannot be read
// counts as unchanged, so that it is deleted when its machine recovers.
func TestTakenBack(t *testing.T) {
	seen := v1alpha1.SurgeRemediationSpec{Abort: true, Hold: &v1alpha1.RemediationHold{}}
	r := &v1alpha1.SurgeRemediation{Spec: seen}
	if ordersRemoved(seen, r) {
		t.Error("takenBack = true for an unchanged request")
	}
	r.Spec.Abort = false
	if !ordersRemoved(seen, r) {
		t.Error("takenBack = false after the abort was removed")
	}
	r.Spec = v1alpha1.SurgeRemediationSpec{Abort: true}
	if !ordersRemoved(seen, r) {
		t.Error("takenBack = false after the hold was removed")
	}
	seen.Abort, r.Spec.Abort = false, false
	r.Unreadable.Spec = &v1alpha1.UnreadablePart{}
	if ordersRemoved(seen, r) {
		t.Error("takenBack = true for a request that cannot be read")
	}
}
