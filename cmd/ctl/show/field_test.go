package show

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
)

// What a daemon has said something about was not overlooked, also if it has no phase: its spec is refused, for example.
func TestOutlookOfWhatWasRefused(t *testing.T) {
	if told := strings.Join(View{}.Outlook(false, true, "spec.schedule is wrong", "correct it"), "\n"); strings.Contains(told, "no daemon") {
		t.Error(told)
	}
	if told := strings.Join(View{}.Outlook(false, true, "", ""), "\n"); !strings.Contains(told, "no daemon has taken note of it yet") {
		t.Error(told)
	}
}

// Why nothing is driven is said only if it is because of the log: the rest is what a thing says itself.
func TestUntrusted(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason string) string {
		return strings.Join(View{}.Untrusted([]metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: status, Reason: reason, Message: "another log acted here last"}}), "\n")
	}
	for _, reason := range []trust.Reason{trust.WentBack, trust.Replaced, trust.AnotherCluster, trust.Newer} {
		if got := of(metav1.ConditionTrue, string(reason)); got != "Stalled:      another log acted here last" {
			t.Errorf("%s: %q", reason, got)
		}
	}
	if got := of(metav1.ConditionFalse, string(trust.Replaced)) + of(metav1.ConditionTrue, "Stranded"); got != "" {
		t.Error(got)
	}
}
