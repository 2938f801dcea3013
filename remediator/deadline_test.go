package remediator

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// WrongOutlook returns what is wrong with the outlook of a machine, or "". The outlook is wrong if
// the step function acts before the predicted time, does nothing at that time, or acts when no time
// is predicted. The facts must leave nothing to decide now.
func WrongOutlook(s *State, f *Facts, now time.Time) string {
	if slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.hasFutureTime(now) }) {
		return "" // the clock was set back, so timestamps in the future count from another time
	}
	for _, a := range s.InProgress() {
		step := func(at time.Time) ([]Event, []Action) {
			view := s.focused(a)
			return view.advanceActive(f, at), Actions(view, f, at)
		}
		if events, _ := step(now); len(events) > 0 {
			continue // another event comes first
		}
		o, ok := OutlookOf(s, a.Victim.UID, f, now)
		quiet := []time.Duration{time.Second, time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour, 1000 * time.Hour}
		if !o.Until.IsZero() {
			left := o.Until.Sub(now)
			quiet = []time.Duration{left / 4, left / 2, left - 1}
		}
		switch _, before := step(now); {
		case !ok:
			return "no outlook of " + a.Victim.Name
		case !o.Until.IsZero() && o.Then == "":
			return "nobody knows what happens to " + a.Victim.Name
		case !o.Until.IsZero():
			if events, actions := step(o.Until); len(events) == 0 && reflect.DeepEqual(before, actions) {
				return "nothing happens to " + a.Victim.Name + " at " + o.Until.String() + ": " + o.Then
			}
		}
		for _, d := range quiet {
			if events, _ := step(now.Add(d)); len(events) > 0 && !a.onlyRephrases(events) {
				return "after " + d.String() + " something happens to " + a.Victim.Name + ", in step " + string(a.Step) + ": " + reflect.TypeOf(events[0]).Name() + "; the outlook names " + o.Until.String()
			}
		}
	}
	return s.wrongWaits(f, now)
}

// hasFutureTime reports whether the machine has a timestamp in the future.
func (m *Machine) hasFutureTime(now time.Time) bool {
	for _, c := range m.Conditions {
		if c.Since.After(now) {
			return true
		}
	}
	return m.Created.After(now) || m.DeletingSince.After(now) || m.Draining.After(now) || m.Detaching.After(now)
}

// onlyRephrases reports whether the only event is that the remediation stays frozen by the same
// rule, with another message.
func (a *Active) onlyRephrases(events []Event) bool {
	frozen, ok := events[0].(Frozen)
	return ok && len(events) == 1 && frozen.Rule == a.Frozen
}

func (s *State) wrongWaits(f *Facts, now time.Time) string {
	for _, u := range s.unhealthy() {
		o, ok := OutlookOf(s, u.UID, f, now)
		m := f.machine(u.Subject)
		if !ok || o.Until.IsZero() || m == nil || s.activeOf(u.UID) != nil {
			continue
		}
		waits := func(at time.Time) bool { // compare the failure domain too: when one recovers, the machine may wait for another
			d := s.decide(u, m, f, at)
			return d.Rule == u.Decision.Rule && d.Domain == u.Decision.Domain
		}
		switch {
		case u.Mark.State == Failing:
			before, then := Judge(m, u.Mark, f.Policy.Checks, o.Until.Add(-1)), Judge(m, u.Mark, f.Policy.Checks, o.Until)
			if before.State != Failing || then.State == Failing {
				return fmt.Sprintf("%s is not unhealthy at %s: %+v, then %+v", u.Name, o.Until, before, then)
			}
		case u.EscalationStep == "" && waits(now):
			if now.Before(o.Until.Add(-time.Second)) && !waits(o.Until.Add(-time.Second)) || waits(o.Until.Add(time.Second)) {
				return u.Name + " does not wait until " + o.Until.String() + " by rule " + u.Decision.Rule
			}
		}
	}
	return ""
}
