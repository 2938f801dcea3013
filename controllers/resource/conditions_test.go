package resource

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
)

func TestKstatus(t *testing.T) {
	old := Kstatus([]metav1.Condition{{Type: "Other", Status: "True"}}, 1, "", Value{}, Value{True: true, Message: "1"}, Value{})
	for i := range old {
		if old[i].Type != "Other" && (old[i].Reason != "Unknown" || old[i].ObservedGeneration != 1) {
			t.Errorf("condition = %+v", old[i])
		}
		old[i].LastTransitionTime = metav1.Unix(1, 0)
	}
	// An unchanged condition keeps its time, and neither the conditions of others nor the old list change.
	list := Kstatus(old, 2, "Deleting", Value{}, Value{True: true, Message: "2"}, Value{True: true})
	if c := meta.FindStatusCondition(list, v1alpha1.ConditionReconciling); c.LastTransitionTime != metav1.Unix(1, 0) || c.Message != "2" || c.Reason != "Deleting" {
		t.Errorf("Reconciling = %+v", c)
	}
	if c := meta.FindStatusCondition(list, v1alpha1.ConditionStalled); c.LastTransitionTime == metav1.Unix(1, 0) || c.Status != metav1.ConditionTrue {
		t.Errorf("Stalled = %+v", c)
	}
	if meta.FindStatusCondition(list, "Other") == nil {
		t.Error("the condition of another client was removed")
	}
	if c := meta.FindStatusCondition(old, v1alpha1.ConditionReconciling); c.Message != "1" {
		t.Error("the old list was changed")
	}
}

func TestCut(t *testing.T) {
	if s := TruncateNote("as it is"); s != "as it is" {
		t.Error(s)
	}
	if s := TruncateNote(strings.Repeat("ä", 5000)); len(s) > 1024 || !strings.HasSuffix(s, "ä...") {
		t.Errorf("Short returned %d bytes that end with %q", len(s), s[len(s)-8:])
	}
	if s := TruncateMessage(strings.Repeat("x", 50000)); len(s) > 32768 {
		t.Errorf("Long returned %d bytes, want at most 32768", len(s))
	}
}

func TestThrottled(t *testing.T) {
	list := WithThrottled(nil, supervise.Throttled{}, 1)
	if len(list) != 0 {
		t.Errorf("conditions = %+v for an object that was never throttled, want none", list)
	}
	list = WithThrottled(list, supervise.Throttled{Reason: supervise.QuotaExceeded, Message: "too much"}, 2)
	if c := meta.FindStatusCondition(list, v1alpha1.ConditionThrottled); c == nil || c.Status != metav1.ConditionTrue || c.Reason != "QuotaExceeded" || c.Message != "too much" || c.ObservedGeneration != 2 {
		t.Errorf("Throttled = %+v", c)
	}
	if c := meta.FindStatusCondition(WithThrottled(list, supervise.Throttled{}, 2), v1alpha1.ConditionThrottled); c.Status != metav1.ConditionFalse || c.Reason == "" {
		t.Errorf("Throttled = %+v", c)
	}
}
