package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/push"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

const id = "fleet/create/1"

// step succeeds, but for the tasks that fail.
type step struct{ fail map[string]bool }

func (*step) Validate(json.RawMessage) []workflow.Problem { return nil }

func (s *step) Run(_ context.Context, c *task.Call) (json.RawMessage, error) {
	if s.fail[c.Task] {
		return nil, errors.New("it does not work")
	}
	return json.RawMessage(`{"task":"` + c.Task + `"}`), nil
}

func (*step) Undo(context.Context, *task.Call) error { return nil }

func drive(t *testing.T, log aggregate.Log, incarnation string, fail ...string) *workflow.State {
	t.Helper()
	s := &step{fail: map[string]bool{}}
	for _, name := range fail {
		s.fail[name] = true
	}
	r := &runner.Runner{
		Log: log, Incarnation: incarnation, Logger: quiet(),
		Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Step": s}, nil },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	state, _, err := r.State(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// begin has a run in a log that was aborted by its second task.
func begin(t *testing.T, log *eventlog.Log, fail ...string) {
	t.Helper()
	spec := &v1alpha1.WorkflowRunSpec{Tasks: []v1alpha1.TaskSpec{
		{StepSpec: v1alpha1.StepSpec{Name: "a", Kind: "Step"}},
		{StepSpec: v1alpha1.StepSpec{Name: "b", Kind: "Step"}, Needs: []v1alpha1.Need{{Task: "a"}}},
	}}
	d, problems := workflow.Build(spec, workflow.Options{Namespace: "fleet", Name: "create", Kind: func(string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, true }})
	if d == nil {
		t.Fatal(problems)
	}
	if err := (&runner.Runner{Log: log, Logger: quiet()}).Request(t.Context(), id, "user/jane", d); err != nil {
		t.Fatal(err)
	}
	drive(t, log, "local", fail...)
}

func plan(from, to push.Log) *push.Push {
	return &push.Push{From: from, To: to, Run: id, Actor: "user/jane", FromName: "here", ToName: "there"}
}

// cut is a log that goes away after so many appends.
type cut struct {
	push.Log
	left int
}

var errCut = errors.New("killed")

func (c *cut) Append(ctx context.Context, commit eventlog.Commit) (eventlog.Receipt, error) {
	if c.left == 0 {
		return eventlog.Receipt{}, errCut
	}
	c.left--
	return c.Log.Append(ctx, commit)
}

// Whatever append a push dies before, nobody touches the half that has arrived, and the next push completes it: all
// commits are there with their ids, actors and times, the run is sealed here and continues there.
func TestPushCompletesAfterADeathAtEveryAppend(t *testing.T) {
	cuts := 0
	for n := 0; ; n++ {
		from, to := logtest.Open(t), logtest.Open(t)
		begin(t, from, "b")
		_, err := plan(from, &cut{to, n}).Do(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		cuts++
		half, _, err := (&runner.Runner{Log: to, Logger: quiet()}).State(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if half.Known() && workflow.Due(half, time.Now()) {
			t.Fatalf("after %d appends the half that has arrived may be driven: %s", n, workflow.CurrentPhase(half))
		}
		if _, err := plan(from, to).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := plan(from, to).Do(t.Context()); err != nil {
			t.Fatalf("again after %d appends: %v", n, err)
		}
		arrived(t, from, to)
		if _, err := plan(from, to).Do(t.Context()); err != nil {
			t.Fatalf("once more: %v", err)
		}
		goesOn(t, to)
	}
	t.Logf("died before each of %d appends", cuts)
	if cuts < 5 {
		t.Errorf("only %d appends", cuts)
	}
}

func arrived(t *testing.T, from, to *eventlog.Log) {
	t.Helper()
	aggregate := eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}
	here, err := from.Read(t.Context(), aggregate, 0)
	if err != nil {
		t.Fatal(err)
	}
	there, err := to.Read(t.Context(), aggregate, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(here)+2 { // the arrival before, the receipt after
		t.Fatalf("%d commits of %d", len(there), len(here))
	}
	for i := range here {
		want, err := here[i].Events()
		if err != nil {
			t.Fatal(err)
		}
		for n := range want {
			if actor, ok := strings.CutPrefix(want[n].Actor, "daemon/"); ok { // the cluster's daemon has not written it
				want[n].Actor = "local/daemon/" + actor
			}
		}
		got, err := there[i+1].Events()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || here[i].CommitID != there[i+1].CommitID {
			t.Fatalf("commit %s became %s: %s", here[i].CommitID, there[i+1].CommitID, diff)
		}
	}
	sealed, _, err := (&runner.Runner{Log: from, Logger: quiet()}).State(t.Context(), id)
	if err != nil || sealed.HandedOver != "there" || workflow.Due(sealed, time.Now()) {
		t.Fatalf("it is not sealed here: %v", err)
	}
}

func goesOn(t *testing.T, to *eventlog.Log) {
	t.Helper()
	r := &runner.Runner{Log: to, Logger: quiet()}
	if err := r.Command(t.Context(), id, "user/jane", workflow.ResumeRun{}); err != nil {
		t.Fatal(err)
	}
	s := drive(t, to, "daemon")
	if phase := workflow.CurrentPhase(s); phase != v1alpha1.RunSucceeded || s.Task(0).Attempts != 1 || s.Task(1).Attempts != 2 {
		t.Errorf("%s: %+v", phase, workflow.Status(s))
	}
}

func TestPushOfARunThatIsOverBringsItsHistory(t *testing.T) {
	from, to := logtest.Open(t), logtest.Open(t)
	begin(t, from)
	if _, err := plan(from, to).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, _, err := (&runner.Runner{Log: to, Logger: quiet()}).State(t.Context(), id)
	if err != nil || workflow.CurrentPhase(s) != v1alpha1.RunSucceeded {
		t.Errorf("%s, %v", workflow.CurrentPhase(s), err)
	}
}

func TestPushRefusesAnotherRunOfTheSameID(t *testing.T) {
	from, to := logtest.Open(t), logtest.Open(t)
	begin(t, from, "b")
	begin(t, to, "b")
	if _, err := plan(from, to).Check(t.Context()); !errors.Is(err, push.ErrOther) {
		t.Errorf("%v", err)
	}
	p := plan(from, logtest.Open(t))
	if _, err := p.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.ToName = "elsewhere"
	if _, err := p.Check(t.Context()); err == nil {
		t.Error("it was handed over twice")
	}
}
