package conditions

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
)

// A status that was read back is not written again for parts of a second, which are not stored.
func TestWrite(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	made := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m1"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(made).WithStatusSubresource(made).Build()
	write := func(at time.Time) bool {
		t.Helper()
		stored := &v1alpha1.SurgeRemediation{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), stored); err != nil {
			t.Fatal(err)
		}
		after := stored.DeepCopy()
		after.Status.Phase, after.Status.MarkedAt = v1alpha1.RemediationMarked, &metav1.Time{Time: at}
		written, err := Write(t.Context(), c, stored, after)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	if !write(time.Unix(7, 5)) {
		t.Error("it was not written")
	}
	if write(time.Unix(7, 5)) {
		t.Error("it was written again")
	}
	if !write(time.Unix(8, 5)) {
		t.Error("another second was not written")
	}
	gone := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "gone"}}
	after := gone.DeepCopy()
	after.Status.Phase = v1alpha1.RemediationMarked
	if written, err := Write(t.Context(), c, gone, after); written || err != nil {
		t.Errorf("of an object that is gone: %t, %v", written, err)
	}
}
