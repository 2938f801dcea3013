package workflow

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
)

// TestAnyFacts applies any events in any order: a log of another version, or a damaged one, may lead to a strange
// state, but must not crash the process. Every type of event is used.
func TestAnyFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDefinition(t)
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		var s State
		if rapid.Bool().Draw(t, "begun") {
			for _, e := range append(Start(d, "", now), Claimed{Holder: "one"}) {
				s.Apply(e, now)
			}
		}
		catalog := NewCatalog()
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			e := anyFact(t, d, now)
			stored, err := catalog.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			again, err := catalog.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(e, again) {
				t.Fatalf("%T decodes to %+v, want %+v", e, again, e)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
			s.Apply(e, now)
			_, _ = Decide(&s, Tick{Parallel: 3}, now)
			_, _ = Decide(&s, ResumeRun{ProcessDied: true}, now)
			_, _ = Decide(&s, ActFailed{Task: "t0", Attempt: 1}, now)
			_, _ = Decide(&s, Decision{Task: "t0", Action: ActRetry}, now)
			_, _ = Plan(&s, d, Choices{})
			_, _, _, _ = Effects(&s), Status(&s), NextAt(&s), Due(&s, now)
			_ = s.Inputs("t1", "")
			EachStep(&s, func(Effect, bool) {})
		}
	})
}

// anyFact draws an event of any type with random values, including names of the run.
func anyFact(t *rapid.T, d *Definition, now time.Time) Event {
	prototype := rapid.SampledFrom([]Event{
		Defined{},
		Started{},
		Claimed{},
		Stranded{},
		Paused{},
		Resumed{},
		Verified{},
		Aborted{},
		RollbackStarted{},
		Ended{},
		Migrated{},
		TaskStarted{},
		UndoRecorded{},
		Progressed{},
		AttemptFailed{},
		StepSucceeded{},
		TaskSucceeded{},
		TaskFailed{},
		TaskPaused{},
		TaskSkipped{},
		TaskInterrupted{},
		EdgeExpired{},
		TaskReleased{},
		Decided{},
		UndoStarted{},
		UndoAttemptFailed{},
		Undone{},
		UndoFailed{},
		HandlerStarted{},
		HandlerEnded{},
	}).Draw(t, "fact")
	v := reflect.New(reflect.TypeOf(prototype)).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		switch name := v.Type().Field(i).Name; {
		case name == "Header":
			field.Set(reflect.ValueOf(d.Header))
		case name == "Tasks":
			field.Set(reflect.ValueOf(d.Tasks))
			if rapid.IntRange(0, 4).Draw(t, "unsound") == 0 {
				field.Set(reflect.ValueOf([]Task{{Name: "odd", Stage: 7, Needs: []Need{{Task: "nobody", On: v1alpha1.OnSuccess}}}}))
			}
		case name == "Of":
			field.SetInt(int64(rapid.IntRange(0, 2).Draw(t, "of")))
		case name == "Attempt":
			field.SetInt(int64(rapid.IntRange(-1, 3).Draw(t, "attempt")))
		case name == "Step":
			field.SetString(rapid.SampledFrom([]string{"", "", "before/x", "after/x", "?"}).Draw(t, "step"))
		case name == "Task" || name == "Need":
			field.SetString(anyName(t))
		case name == "Rerun":
			field.Set(reflect.ValueOf([]string{anyName(t), anyName(t)}))
		case name == "Gone":
			field.Set(reflect.ValueOf([]Gone{{Task: anyName(t), Reason: "why"}}))
		case name == "Plan":
			field.Set(reflect.ValueOf([]Change{{Task: anyName(t), Action: rapid.SampledFrom([]changeAction{Keep, Rerun, Run, KeepUndo, Forget}).Draw(t, "change")}}))
		case name == "Handler":
			field.SetString(fmt.Sprintf("onFailure/%d", rapid.IntRange(0, 2).Draw(t, "handler")))
		case name == "Phase":
			field.SetString(string(rapid.SampledFrom([]v1alpha1.RunPhase{v1alpha1.RunAborted, v1alpha1.RunSucceeded, v1alpha1.RunFailed}).Draw(t, "phase")))
		case name == "Verdict":
			field.SetString(string(rapid.SampledFrom([]v1alpha1.Verdict{v1alpha1.VerdictBlocking, v1alpha1.VerdictIgnored, v1alpha1.VerdictHandled}).Draw(t, "verdict")))
		case name == "Action":
			field.SetString(string(rapid.SampledFrom([]Action{ActRetry, ActIgnore, ActIgnoreChildren, ActSucceed, ActRetryUndo, ActMarkUndone, ActAbandon}).Draw(t, "action")))
		case field.Type() == reflect.TypeFor[time.Time]():
			field.Set(reflect.ValueOf(now.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "at")) * time.Second)))
		case field.Kind() == reflect.Bool:
			field.SetBool(rapid.Bool().Draw(t, name))
		case field.Kind() == reflect.String:
			field.SetString(rapid.SampledFrom([]string{"", "x", string(ReasonHeld), string(ReasonFailed), string(CauseLost)}).Draw(t, name))
		case field.Type() == reflect.TypeFor[Duration]():
			field.SetInt(int64(rapid.IntRange(-1, 1000).Draw(t, name)) * int64(time.Second))
		case field.Kind() == reflect.Int:
			field.SetInt(int64(rapid.IntRange(0, 2).Draw(t, name)))
		}
	}
	return v.Interface().(Event)
}

func anyName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"t0", "t1", "t2", "t3", "odd", "nobody", ""}).Draw(t, "name")
}
