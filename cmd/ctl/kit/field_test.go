package kit

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/trust"
)

// TestOutlookOfWhatWasRefused checks that an object with a message but without a phase, such as one whose spec was
// rejected, is not reported as unseen by a daemon.
func TestOutlookOfWhatWasRefused(t *testing.T) {
	if told := strings.Join(View{}.Outlook(false, true, "spec.schedule is wrong", "correct it"), "\n"); strings.Contains(told, "no daemon") {
		t.Error(told)
	}
	if told := strings.Join(View{}.Outlook(false, true, "", ""), "\n"); !strings.Contains(told, "no daemon has acted on it yet") {
		t.Error(told)
	}
}

// TestUntrusted checks that the Stalled condition is shown only if the log is the reason.
func TestUntrusted(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason string) string {
		return strings.Join(View{}.Untrusted([]metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: status, Reason: reason, Message: "another log acted here last"}}), "\n")
	}
	for _, reason := range []trust.Reason{trust.WentBack, trust.Replaced, trust.AnotherCluster, trust.Newer} {
		if got := of(metav1.ConditionTrue, string(reason)); got != "Stalled:      another log acted here last" {
			t.Errorf("%s: got %q", reason, got)
		}
	}
	if got := of(metav1.ConditionFalse, string(trust.Replaced)) + of(metav1.ConditionTrue, "Stranded"); got != "" {
		t.Error(got)
	}
}

func TestBar(t *testing.T) {
	if got := (View{}).Bar(cli.Cyan, 7, 1000); !strings.HasSuffix(got, "░    7/1000") {
		t.Errorf("Bar = %q", got)
	}
}
