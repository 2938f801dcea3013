package workflow

import (
	"strings"
	"testing"
	"time"
)

// TestMigrateByAnOldPlan checks that a plan is rejected if the run has continued since: a task that has succeeded since
// would run again.
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
		t.Fatalf("Plan = %+v, want Run", plan)
	}
	apply(Resumed{}, Claimed{Holder: "one"}, TaskStarted{Task: "a", Attempt: 1}, TaskSucceeded{Task: "a"})
	if _, err := Decide(&s, Migrate{To: to, Plan: plan}, now); err == nil || !strings.Contains(err.Error(), "since this plan was made") {
		t.Errorf("Migrate by an outdated plan = %v, want an error", err)
	}
	plan, _ = Plan(&s, to, Choices{Rerun: []string{"a"}})
	if _, err := Decide(&s, Migrate{To: to, Plan: plan}, now); err != nil {
		t.Error(err)
	}
}

// TestMigrateKeepsHandlersByName checks that pending handlers are matched by name, at any position in the new
// definition.
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
	apply(Claimed{Holder: "one"}, TaskStarted{Task: "a", Attempt: 1}, TaskPaused{Task: "a", Reason: ReasonFailed, Message: "broken"})
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
		t.Errorf("pending handlers = %v, want notify", pending)
	}
}
