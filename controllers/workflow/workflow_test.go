package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

func TestID(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, id string
		adopted        bool
		refused        string
	}{
		"its own":               {"", "fleet/up/01234567", false, ""},
		"its own, named":        {"fleet/up/01234567", "fleet/up/01234567", false, ""},
		"one that was named":    {"fleet/up/3", "fleet/up/3", true, ""},
		"of another namespace":  {"other/up/3", "fleet/up/01234567", false, "is not one of fleet/up"},
		"of another name":       {"fleet/down/3", "fleet/up/01234567", false, "is not one of fleet/up"},
		"of a name that begins": {"fleet/upper/3", "fleet/up/01234567", false, "is not one of fleet/up"},
		"a task's mark":         {"fleet/other/89abcdef/make", "fleet/up/01234567", false, ""},
		"nonsense":              {"up", "fleet/up/01234567", false, "is not one of fleet/up"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789"}}
			if c.annotation != "" {
				w.Annotations = map[string]string{v1alpha1.RunAnnotation: c.annotation}
			}
			id, adopted, err := w.LogID()
			if id != c.id || adopted != c.adopted || (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("LogID = %q, %v, %v", id, adopted, err)
			}
			if !strings.HasPrefix(id, "fleet/up/") { // a change of the run is mapped to the resource by this prefix
				t.Errorf("LogID = %q does not start with the name of the resource", id)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	for phase, want := range map[v1alpha1.RunPhase]string{
		v1alpha1.RunPending: "Reconciling", v1alpha1.RunRunning: "Reconciling", v1alpha1.RunPartiallyPaused: "Reconciling", v1alpha1.RunRollingBack: "Reconciling",
		v1alpha1.RunSucceeded: "Ready", v1alpha1.RunDegraded: "Ready",
		v1alpha1.RunPaused: "Stalled", v1alpha1.RunAborted: "Stalled", v1alpha1.RunRolledBack: "Stalled", v1alpha1.RunRollbackFailed: "Stalled",
		v1alpha1.RunFailed: "Stalled", v1alpha1.RunStranded: "Stalled",
	} {
		list := kstatus([]metav1.Condition{{Type: "Other", Status: "True"}}, v1alpha1.WorkflowRunStatus{Phase: phase, Message: "as it is", Next: "do that"}, 3)
		var got []string
		for _, c := range list {
			if c.Type == "Other" {
				continue
			}
			if c.Status == metav1.ConditionTrue {
				got = append(got, c.Type)
			}
			if c.ObservedGeneration != 3 || c.Reason != string(phase) {
				t.Errorf("%s: condition = %+v", phase, c)
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" || len(list) != 4 {
			t.Errorf("%s: got %d conditions: %s", phase, len(list), diff)
		}
		if want == "Stalled" && meta.FindStatusCondition(list, v1alpha1.ConditionStalled).Message != "do that" {
			t.Errorf("%s: Stalled has no advice", phase)
		}
	}
}

// TestPaceOfLargeRuns checks that large WorkflowRuns are written less than once a second.
func TestPaceOfLargeRuns(t *testing.T) {
	with := func(n int) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: make([]byte, n)} }
	task := func(n int) (t v1alpha1.TaskSpec) {
		t.With = with(n)
		return t
	}
	for name, c := range map[string]struct {
		spec        v1alpha1.WorkflowRunSpec
		least, most time.Duration
	}{
		"as most are":   {v1alpha1.WorkflowRunSpec{Tasks: []v1alpha1.TaskSpec{task(1000), {}}}, time.Second, time.Second},
		"one manifest":  {v1alpha1.WorkflowRunSpec{Tasks: []v1alpha1.TaskSpec{task(1 << 20)}}, 15 * time.Second, 20 * time.Second},
		"many tasks":    {v1alpha1.WorkflowRunSpec{Tasks: make([]v1alpha1.TaskSpec, 10_000)}, 20 * time.Second, time.Minute},
		"a named one's": {v1alpha1.WorkflowRunSpec{Workflow: &v1alpha1.NamedWorkflow{Params: with(640 << 10)}}, 10 * time.Second, 10 * time.Second},
	} {
		w := &v1alpha1.WorkflowRun{Spec: c.spec}
		for range 2 { // a cache may call it again
			if _, err := Cached(w); err != nil {
				t.Fatal(err)
			}
		}
		if every := publishIntervalFor(w); every < c.least || every > c.most {
			t.Errorf("%s: written every %s", name, every)
		}
	}
}

func TestNews(t *testing.T) {
	task := func(name string, phase v1alpha1.TaskPhase) v1alpha1.TaskStatus {
		return v1alpha1.TaskStatus{Name: name, Phase: phase, Message: "why"}
	}
	before := &v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunRunning, Tasks: []v1alpha1.TaskStatus{task("old", v1alpha1.TaskFailed), task("a", v1alpha1.TaskRunning)}}
	after := &v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunPaused, Message: "waits", Tasks: []v1alpha1.TaskStatus{
		task("old", v1alpha1.TaskFailed), task("a", v1alpha1.TaskPaused), task("b", v1alpha1.TaskSucceeded), task("c", v1alpha1.TaskIgnored),
	}}
	want := []eventItem{{"Warning", "TaskPaused", "task a: why"}, {"Warning", "TaskIgnored", "task c: why"}, {"Warning", "Paused", "waits"}}
	with := func(s *v1alpha1.WorkflowRunStatus) *v1alpha1.WorkflowRun {
		w := &v1alpha1.WorkflowRun{Status: *s}
		w.Namespace, w.Name = "fleet", "prod"
		return w
	}
	if diff := cmp.Diff(want, newEvents(with(after), before), cmp.AllowUnexported(eventItem{})); diff != "" {
		t.Error(diff)
	}
	if again := newEvents(with(after), after); len(again) != 0 {
		t.Errorf("repeated news: %v", again)
	}
	many := &v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunPaused}
	for i := range 100 {
		many.Tasks = append(many.Tasks, task(fmt.Sprint(i), v1alpha1.TaskFailed))
	}
	if got := newEvents(with(many), after); len(got) != maxTaskEvents+1 || got[maxTaskEvents].note != "90 more tasks failed or wait: run `scutectl describe run prod -n fleet`" {
		t.Errorf("got %d events: %v", len(got), got[len(got)-1])
	}
}

func TestList(t *testing.T) {
	got := list([]workflow.Problem{
		{Task: "a", Field: "spec.tasks[0].kind", Message: "doubtful", Warning: true},
		{Task: "b", Field: "spec.tasks[1].kind", Message: "unknown", Remedy: "check it"},
	})
	if want := "task \"b\": spec.tasks[1].kind: unknown: check it; warning: task \"a\": spec.tasks[0].kind: doubtful"; got != want {
		t.Errorf("list = %s", got)
	}
}
