package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

type start struct {
	provider.Context
	Name string
}

type reached struct {
	start
	Address string
}

type address struct {
	Address string `json:"address"`
}

func (a address) Check() error {
	if a.Address == "" {
		return errors.New("it lacks address")
	}
	return nil
}

const (
	before hook.Task[start, start]     = "before"
	reach  hook.Task[start, reached]   = "reach"
	use    hook.Task[reached, reached] = "use"
)

// construct builds the workflow again for each attempt, as after a restart. seen collects the calls of steps and hooks.
func construct(t *testing.T, seen *[]string) task.NamedWorkflow {
	t.Helper()
	b := hook.NewBinder(before.Point(), reach.Point(), use.Point()).SetRegistrar("part")
	say := func(what string) { *seen = append(*seen, what) }
	for _, err := range []error{
		hook.Before(b, reach, func(c *start) error { say("hook before " + c.Name); return nil }),
		hook.After(b, reach, func(c *reached) error { say("hook after at " + c.Address); return nil },
			func(c *reached) error { say("undone at " + c.Address); return nil }),
		hook.After(b, use, func(c *reached) error { say("last hook at " + c.Address); return nil }),
		hook.OnFailure(b, func(c *start) error {
			say("failure of " + c.Failure().Task + " of " + c.Name)
			return c.Record("told", true, false)
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := provider.Begin(&access.Clusters{}, start{Name: "prod"})
	s = provider.Then(s, provider.Do(before, 0, func(*start) error { return nil }, nil))
	r := provider.Then(s, provider.Step[start, reached, address]{
		Task: reach,
		Run:  func(c *start) (address, error) { return address{"at " + c.Name}, nil },
		Next: func(c start, a address) reached { return reached{c, a.Address} },
	})
	r = provider.Then(r, provider.Do(use, 0,
		func(c *reached) error { say("used " + c.Address); return nil },
		func(c *reached) error { say("unused " + c.Address); return nil }))
	made, problems := r.Build(b)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return made
}

// TestContextsComeFromTheLog checks that a context is restored from the log alone: each attempt has new tasks, as if
// the process had crashed before it.
func TestContextsComeFromTheLog(t *testing.T) {
	var seen []string
	log := map[string]json.RawMessage{}
	tasks := construct(t, &seen).Tasks
	for i := range tasks {
		steps := append(append([]v1alpha1.StepSpec{}, hooksOf(tasks[i].Before)...), tasks[i].StepSpec)
		steps = append(steps, hooksOf(tasks[i].After)...)
		for _, step := range steps {
			kinds := construct(t, &seen).Kinds
			call := &task.Call{Run: "run", Task: tasks[i].Name, Inputs: log}
			if step.With != nil {
				call.With = step.With.Raw
			}
			out, err := kinds[step.Kind].Run(context.Background(), call)
			if err != nil {
				t.Fatalf("Run of %s = %v", step.Name, err)
			}
			if step.Name == tasks[i].Name {
				log[step.Name] = out
			}
		}
	}
	want := []string{"hook before prod", "hook after at at prod", "used at prod", "last hook at at prod"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if got := string(log["reach"]); got != `{"address":"at prod"}` {
		t.Errorf("logged output = %s", got)
	}
}

func hooksOf(hooks []v1alpha1.HookSpec) (steps []v1alpha1.StepSpec) {
	for i := range hooks {
		steps = append(steps, hooks[i].StepSpec)
	}
	return steps
}

func TestTheShapeOfASequence(t *testing.T) {
	var seen []string
	made := construct(t, &seen)
	tasks, kinds := made.Tasks, made.Kinds
	var shape []string
	for i := range tasks {
		line := tasks[i].Name + " " + tasks[i].Kind
		for _, n := range tasks[i].Needs {
			line += " needs " + n.Task
		}
		for j := range tasks[i].Before {
			line += " before " + tasks[i].Before[j].Name
		}
		for j := range tasks[i].After {
			line += " after " + tasks[i].After[j].Name
		}
		shape = append(shape, line)
	}
	// Hooks after reach need its output, so they run before use.
	want := []string{"before Before", "reach Reach needs before before part-1", "use Use needs reach before part-2 after part-3"}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Error(diff)
	}
	if len(kinds) != 4 {
		t.Errorf("got %d kinds, want 4", len(kinds))
	}
}

// TestAMissingOutput checks that a step fails if an output lacks a required field, because its task was ignored or
// completed by a user, and does not run with an incomplete context.
func TestAMissingOutput(t *testing.T) {
	var seen []string
	kinds := construct(t, &seen).Kinds
	for name, inputs := range map[string]map[string]json.RawMessage{
		"none":  {},
		"empty": {"reach": json.RawMessage(`{}`)},
		"wrong": {"reach": json.RawMessage(`{"address":1}`)},
	} {
		_, err := kinds["Use"].Run(context.Background(), &task.Call{Inputs: inputs})
		if err == nil || !task.IsFinal(err) || !strings.Contains(err.Error(), "reach") {
			t.Errorf("%s: Run = %v, want a final error with the task's name", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("steps ran: %v", seen)
	}
}

func TestUndo(t *testing.T) {
	var seen []string
	made := construct(t, &seen)
	tasks, kinds := made.Tasks, made.Kinds
	log := map[string]json.RawMessage{"reach": json.RawMessage(`{"address":"here"}`)}
	if err := kinds["Use"].Undo(context.Background(), &task.Call{Inputs: log}); err != nil {
		t.Error(err)
	}
	for _, h := range tasks[2].Before {
		if err := kinds[h.Kind].Undo(context.Background(), &task.Call{Inputs: log, With: h.With.Raw}); err != nil {
			t.Error(err)
		}
	}
	if err := kinds["Reach"].Undo(context.Background(), &task.Call{}); err != nil {
		t.Error(err) // nothing to undo
	}
	if diff := cmp.Diff([]string{"unused here", "undone at here"}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestAnUndoRecordsNothing checks that an undo can perform kinds of tasks although the log accepts no record from it.
func TestAnUndoRecordsNothing(t *testing.T) {
	m := &fakeKind{}
	s := provider.Begin(&access.Clusters{}, start{})
	made, _ := provider.Then(s, provider.Do(before, 0, func(*start) error { return nil }, func(c *start) error {
		_, err := c.Perform("back", m, nil)
		return err
	})).Build(hook.NewBinder(before.Point()))
	err := made.Kinds["Before"].Undo(context.Background(), &task.Call{Record: func(context.Context, json.RawMessage, bool) error {
		return errors.New("the attempt is over")
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestHandlersOfFailures checks that a failure handler has the failed task and the initial context of the workflow,
// although the log accepts no record from it.
func TestHandlersOfFailures(t *testing.T) {
	var seen []string
	made := construct(t, &seen)
	if len(made.OnFailure) != 1 || made.OnFailure[0].Name != "part-1" {
		t.Fatalf("handlers = %+v, want part-1", made.OnFailure)
	}
	h := made.OnFailure[0]
	_, err := made.Kinds[h.Kind].Run(t.Context(), &task.Call{
		With: h.With.Raw, Failure: &task.Failure{Task: "reach"},
		Record: func(context.Context, json.RawMessage, bool) error { return errors.New("a handler has no record") },
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"failure of reach of prod"}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestHooksAndHandlersKeepTheirPlaces checks that a hook that is used as a handler, or a handler as a hook, fails
// without running: by a manifest, or in a run of a program with other hooks. A handler without a failure would have no
// data.
func TestHooksAndHandlersKeepTheirPlaces(t *testing.T) {
	b := hook.NewBinder(before.Point())
	none := func(*start) error { t.Error("it was performed"); return nil }
	if err := errors.Join(hook.Before(b.SetRegistrar("hooks"), before, none, none), hook.OnFailure(b.SetRegistrar("handlers"), none)); err != nil {
		t.Fatal(err)
	}
	made, problems := provider.Then(provider.Begin(&access.Clusters{}, start{}), provider.NoOp(before)).Build(b)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	kind, hooked, handles := made.Kinds[provider.HookKind], made.Tasks[0].Before[0].With.Raw, made.OnFailure[0].With.Raw
	_, asHandler := kind.Run(t.Context(), &task.Call{With: hooked, Failure: &task.Failure{}})
	_, asHook := kind.Run(t.Context(), &task.Call{With: handles})
	for name, err := range map[string]error{"handlers-1": asHook, "hooks-1": asHandler} {
		if !task.IsFinal(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a final error with its name", name, err)
		}
	}
	if p := slices.Concat(kind.Validate(hooked), kind.Validate(handles)); len(p) > 0 {
		t.Error(p)
	}
}

// TestAHandlerOfAnotherContext checks that a handler with another context type is rejected with the required type.
func TestAHandlerOfAnotherContext(t *testing.T) {
	b := hook.NewBinder(before.Point())
	if err := hook.OnFailure(b, func(*reached) error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, problems := provider.Begin(&access.Clusters{}, start{}).Build(b)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "must take a *provider_test.start") {
		t.Errorf("problems = %v, want one with the required type", problems)
	}
}

func TestAHookThatIsGone(t *testing.T) {
	var seen []string
	kinds := construct(t, &seen).Kinds
	with := json.RawMessage(`{"hook":"other-1"}`)
	if p := kinds[provider.HookKind].Validate(with); len(p) != 1 {
		t.Errorf("Validate = %v, want one problem", p)
	}
	if _, err := kinds[provider.HookKind].Run(context.Background(), &task.Call{With: with}); !task.IsFinal(err) {
		t.Errorf("Run = %v, want a final error", err)
	}
}
