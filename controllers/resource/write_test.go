package resource_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/controllers/resource"
)

// TestWrite checks that a status that was read back is not written again because of fractions of a second, which are
// not stored.
func TestWrite(t *testing.T) {
	made := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m1"}}
	c := controllertest.Client(t, made)
	write := func(at time.Time) bool {
		t.Helper()
		stored := &v1alpha1.SurgeRemediation{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), stored); err != nil {
			t.Fatal(err)
		}
		after := stored.DeepCopy()
		after.Status.Phase, after.Status.MarkedAt = v1alpha1.RemediationMarked, &metav1.Time{Time: at}
		written, err := resource.Write(t.Context(), c, stored, after)
		if err != nil {
			t.Fatal(err)
		}
		return written
	}
	if !write(time.Unix(7, 5)) {
		t.Error("Write = false for the first status")
	}
	if write(time.Unix(7, 5)) {
		t.Error("Write = true for the same status")
	}
	if !write(time.Unix(8, 5)) {
		t.Error("Write = false for another second")
	}
	gone := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "gone"}}
	after := gone.DeepCopy()
	after.Status.Phase = v1alpha1.RemediationMarked
	if written, err := resource.Write(t.Context(), c, gone, after); written || err != nil {
		t.Errorf("Write of a deleted object = %t, %v", written, err)
	}
}

// TestPublish checks that an object that cannot be read has a condition for as long as that lasts, and gets one event.
func TestPublish(t *testing.T) {
	made := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m1"}}
	c := controllertest.Client(t, made)
	recorder := events.NewFakeRecorder(9)
	publish := func(message string, wrong *v1alpha1.UnreadablePart) []metav1.Condition {
		t.Helper()
		before := &v1alpha1.SurgeRemediation{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), before); err != nil {
			t.Fatal(err)
		}
		before.Unreadable.Spec = wrong
		after := before.DeepCopy()
		after.Status.Message = message
		if written, err := resource.Publish(t.Context(), c, recorder, before, after, &after.Status.Conditions); !written || err != nil {
			t.Fatal(written, err)
		}
		return after.Status.Conditions
	}
	wrong := &v1alpha1.UnreadablePart{Field: "spec.hold", Problem: "is new"}
	for _, message := range []string{"first", "second"} {
		if !meta.IsStatusConditionFalse(publish(message, wrong), v1alpha1.ConditionReadable) {
			t.Errorf("%s: the condition Readable is not False", message)
		}
	}
	if list := publish("third", nil); meta.FindStatusCondition(list, v1alpha1.ConditionReadable) != nil {
		t.Errorf("conditions of a readable object = %+v", list)
	}
	if n := len(recorder.Events); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}
