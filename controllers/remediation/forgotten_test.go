package remediation

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// forgotten is a view that has forgotten an owner.
type forgotten struct{ records }

func (forgotten) Status(string, types.UID) (v1alpha1.SurgeRemediationStatus, bool) {
	return v1alpha1.SurgeRemediationStatus{}, false
}

// TestTheEndOfAForgottenRemediationRemains checks that the final status of a forgotten remediation remains while its
// machine exists.
func TestTheEndOfAForgottenRemediationRemains(t *testing.T) {
	if s := statusAfterReconcile(t, forgotten{}); s.Phase != v1alpha1.RemediationRecovered || s.Message != "it recovered" || s.LogSequence != 7 || s.FinishedAt == nil {
		t.Errorf("status = %+v", s)
	}
}

// statusAfterReconcile returns the status of the request of a recovered machine, in a namespace
// without policies, after a reconcile with the view.
func statusAfterReconcile(t *testing.T, view records) v1alpha1.SurgeRemediationStatus {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	owners := []metav1.OwnerReference{{APIVersion: controlplanev1.GroupVersion.String(), Kind: string(remediator.ControlPlane), Name: "cp", UID: "0123", Controller: new(true)}}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m", UID: "m", OwnerReferences: owners}, Spec: clusterv1.MachineSpec{ClusterName: "prod"}}
	request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m"}}
	at := metav1.NewTime(time.Unix(1000, 0))
	request.Status = v1alpha1.SurgeRemediationStatus{
		Phase: v1alpha1.RemediationRecovered, RemediationID: "fleet/cp/0123/m", Message: "it recovered", LogID: "one", LogSequence: 7, FinishedAt: &at,
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, request).WithStatusSubresource(request).Build()
	r := &requestReconciler{
		cache: c, live: c, recorder: events.NewFakeRecorder(9), view: view,
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(request)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatal(err)
	}
	return request.Status
}

// deselected is a view in which a machine's last remediation ended because no policy selects the machine any more.
type deselected struct{ records }

func (deselected) Status(string, types.UID) (v1alpha1.SurgeRemediationStatus, bool) {
	at := metav1.NewTime(time.Unix(2000, 0))
	return v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationUnselected, RemediationID: "fleet/cp/0123/m", FinishedAt: &at}, true
}

// TestAnEarlierEndIsNotToldOfAMachineThatIsUnselected checks that the end of an earlier remediation is not reported for
// a machine that no policy selects.
func TestAnEarlierEndIsNotToldOfAMachineThatIsUnselected(t *testing.T) {
	if s := statusAfterReconcile(t, deselected{}); s.Phase != v1alpha1.RemediationUnselected || s.FinishedAt != nil || s.Next == "" {
		t.Errorf("status = %+v", s)
	}
}
