package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/object"
)

func pauseOf(name string, phase v1alpha1.PausePhase, since time.Duration, next string) *v1alpha1.Pause {
	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: "1a", CreationTimestamp: metav1.NewTime(at().Add(-time.Hour))}}
	p.Status = v1alpha1.PauseStatus{Phase: phase, PhaseSince: &metav1.Time{Time: at().Add(-since)}, Message: "waiting for Machine a", Next: next}
	return p
}

func newDiagnosis(report func(result)) *diagnosis {
	return &diagnosis{kit: &kit.Kit{Env: cli.System("scutectl", "test"), Flags: connect.New()}, now: at, report: report}
}

func kindOf(v *diagnosis, name string) scuteKind {
	kinds := v.kinds()
	return kinds[slices.IndexFunc(kinds, func(k scuteKind) bool { return k.name == name })]
}

func TestPausesThatWait(t *testing.T) {
	unheard, over, left := pauseOf("unheard", "", 0, ""), pauseOf("over", v1alpha1.PauseReleased, time.Hour, ""), pauseOf("left", v1alpha1.PauseAcknowledged, time.Hour, "")
	unheard.Status, over.Status.FinishedAt, left.Spec.Reason = v1alpha1.PauseStatus{}, over.Status.PhaseSince, providerReason
	v := newDiagnosis(nil)
	var got []string
	for _, p := range []*v1alpha1.Pause{
		unheard, over, left, pauseOf("late", v1alpha1.PauseTimedOut, 5*time.Minute, "look at the controllers"),
		pauseOf("slow", v1alpha1.PauseAcknowledging, 2*time.Minute, ""), pauseOf("begun", v1alpha1.PauseAcknowledging, time.Second, ""),
		pauseOf("well", v1alpha1.PauseAcknowledged, time.Hour, ""), pauseOf("refused", v1alpha1.PauseRestoring, time.Second, "fix the webhook"),
	} {
		if r := v.checkObject(kindOf(v, "Pause"), p, statusOf(p)); r != nil {
			got = append(got, r.Level.String()+" "+r.Message+" -> "+r.Remedy)
		}
	}
	want := []string{
		"problem fleet/unheard was created 60m ago and no daemon has acted on it -> check scuted above, and its log lines",
		"warning fleet/left was left by a provider check that was killed; its clusters stay paused -> `scutectl resume cluster left -n fleet`",
		"problem fleet/late is TimedOut for 5m: waiting for Machine a -> look at the controllers; `scutectl describe pause late -n fleet`",
		"warning fleet/slow is Acknowledging for 2m: waiting for Machine a -> `scutectl describe pause slow -n fleet`",
		"problem fleet/refused is Restoring for 1s: waiting for Machine a -> fix the webhook; `scutectl describe pause refused -n fleet`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarksOfPauses(t *testing.T) {
	o := object.Observed{PauseHolders: map[string]string{object.PausePrefix + "1a": "fleet/maintenance", object.PauseAnnotation: "fleet/run/1/hold"}}
	var got []result
	v := newDiagnosis(func(r result) { got = append(got, r) })
	v.listed, v.pauses.Items = map[string]bool{"Pause": true}, []v1alpha1.Pause{*pauseOf("maintenance", v1alpha1.PauseAcknowledged, time.Hour, "")}
	if held, orphan := pausedByPause(v, "fleet/prod", o); !held || orphan || len(got) > 0 {
		t.Errorf("held = %t, orphan = %t: %+v", held, orphan, got)
	}
	v.pauses.Items = nil
	if held, orphan := pausedByPause(v, "fleet/prod", o); !held || !orphan || len(got) != 1 || !strings.Contains(got[0].Message, "Pause fleet/maintenance, which does not exist") {
		t.Errorf("held = %t, orphan = %t: %+v", held, orphan, got)
	}
	v.listed["Pause"] = false // it may be in a namespace that the user cannot read
	if _, orphan := pausedByPause(v, "fleet/prod", o); orphan {
		t.Error("orphan = true although Pauses cannot be listed")
	}
	if held, _ := pausedByPause(v, "fleet/prod", object.Observed{PauseHolders: map[string]string{object.PauseAnnotation: "x"}}); held {
		t.Error("held = true for the annotation of a run")
	}
}

// TestPausesOfRuns checks that annotations of a run in progress are no orphans, also if the run was started locally and
// pushed here.
func TestPausesOfRuns(t *testing.T) {
	for holder, orphan := range map[string]bool{
		"fleet/run/1/hold": false, "fleet/run/1.00aa/hold": false, "fleet/run/1.00aa/after@b.c": false, "fleet/run/10/hold": true, "fleet/run/10.00aa/hold": true, "fleet/other/1/hold": true,
	} {
		var got []result
		v := newDiagnosis(func(r result) { got = append(got, r) })
		v.workflows.Items = []v1alpha1.WorkflowRun{{Status: v1alpha1.WorkflowRunStatus{}}, {Status: v1alpha1.WorkflowRunStatus{RunID: "fleet/run/1"}}}
		u := &unstructured.Unstructured{}
		u.SetAnnotations(map[string]string{object.PauseAnnotation: holder})
		if held, is := pausedByRun(v, "pauses", "fleet/prod", u); !held || is != orphan || (len(got) > 0) != orphan {
			t.Errorf("%s: held = %t, orphan = %t: %+v", holder, held, is, got)
		}
	}
}
