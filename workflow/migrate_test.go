package workflow

import (
	"strings"
	"testing"
	"time"
)

// A plan is a judgement on a run as it was: when the run has gone on since, the plan is refused, because a task that has been
// done since would run again.
func TestMigrateByAnOldPlan(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	definition := func(timeout time.Duration) *Definition {
		step := Step{Kind: "Do", Timeout: Duration(timeout)}
		return &Definition{Header: Header{Name: "any"}, Tasks: []Task{{Name: "a", Stage: StageMain, Steps: []Step{step}}}}
	}
	var s State
	apply := func(events ...Event) {
		for _, e := range events {
			s.Apply(e, now)
		}
	}
	apply(Start(definition(0), "", now)...)
	apply(Paused{})
	to := definition(time.Minute)
	plan, ok := Plan(&s, to, Choices{})
	if !ok || plan[0].Action != Run {
		t.Fatalf("%+v", plan)
	}
	apply(Resumed{}, Claimed{Holder: "one"}, TaskStarted{Task: "a", Attempt: 1}, TaskSucceeded{Task: "a"})
	if _, err := Decide(&s, Migrate{To: to, Plan: plan}, now); err == nil || !strings.Contains(err.Error(), "since this plan was made") {
		t.Errorf("the plan is taken: %v", err)
	}
	plan, _ = Plan(&s, to, Choices{Rerun: []string{"a"}})
	if _, err := Decide(&s, Migrate{To: to, Plan: plan}, now); err != nil {
		t.Error(err)
	}
}

// A handler that has still to run is the same one in another definition, wherever that lists it.
func TestMigrateKeepsHandlersByName(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	definition := func(handlers ...string) *Definition {
		d := &Definition{Header: Header{Name: "any"}, Tasks: []Task{{Name: "a", Stage: StageMain, Steps: []Step{{Kind: "Do"}}}}}
		for _, name := range handlers {
			d.OnFailure = append(d.OnFailure, Step{Name: name, Kind: "Do"})
		}
		return d
	}
	var s State
	apply := func(events ...Event) {
		for _, e := range events {
			s.Apply(e, now)
		}
	}
	apply(Start(definition("diagnose", "notify"), "", now)...)
	apply(Claimed{Holder: "one"}, TaskStarted{Task: "a", Attempt: 1}, TaskPaused{Task: "a", Why: WhyFailed, Message: "broken"})
	to := definition("notify", "page")
	plan, _ := Plan(&s, to, Choices{})
	events, err := Decide(&s, Migrate{To: to, Plan: plan}, now)
	if err != nil {
		t.Fatal(err)
	}
	apply(events...)
	var pending []string
	for _, h := range s.handlers {
		pending = append(pending, s.OnFailure[h.handler].Name)
	}
	if strings.Join(pending, " ") != "notify" {
		t.Errorf("%v have still to run, want notify", pending)
	}
}
