package remediator

import (
	"slices"
	"testing"
	"time"
)

// TestSteps checks the table of steps against Apply: each transition leads to the step in the table, every step can be
// entered and left, and a new step resets the time.
func TestSteps(t *testing.T) {
	reached := map[Step]bool{requesting: true}
	for _, from := range steps {
		for _, tr := range from.exits {
			began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			at := began.Add(time.Minute)
			s := State{Active: &Active{Victim: Subject{Name: "m1", UID: "1"}, Step: from.name, Since: began, Ready: from.name == removing}}
			s.Apply(tr.event, at)
			switch {
			case tr.to == ended:
				if s.Active != nil {
					t.Errorf("%s, %s: %T does not end the remediation", from.name, tr.when, tr.event)
				}
			case s.Active == nil:
				t.Errorf("%s, %s: %T ends the remediation", from.name, tr.when, tr.event)
			case tr.to == same && (s.Active.Step != from.name || s.Active.Since != began):
				t.Errorf("%s, %s: %T leads to %s at %s, want no change", from.name, tr.when, tr.event, s.Active.Step, s.Active.Since)
			case tr.to != same && (s.Active.Step != tr.to || s.Active.Since != at):
				t.Errorf("%s, %s: %T leads to %s at %s, want %s", from.name, tr.when, tr.event, s.Active.Step, s.Active.Since, tr.to)
			}
			reached[tr.to] = true
		}
		if !slices.ContainsFunc(from.exits, func(tr transition) bool { return tr.to != same }) {
			t.Errorf("no transition leads out of %s", from.name)
		}
	}
	for _, step := range steps {
		if !reached[step.name] {
			t.Errorf("no transition leads to %s", step.name)
		}
	}
}
