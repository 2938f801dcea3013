package remediator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/aggregate"
	"scute.dev/remediator"
)

// chain records the events of an owner and checks their causes.
type chain struct {
	causes aggregate.Causes
	of     []string // the cause of each event
}

// add records events that were decided together on the state s. Each must have an earlier event as its cause unless it
// is a root.
func (c *chain) add(s *remediator.State, events []remediator.Event) (wrong string) {
	links := make([]aggregate.Links, len(events))
	for i, e := range events {
		links[i] = remediator.Links(s, e)
		if is := remediator.Links(&remediator.State{}, e).Keys; !cmp.Equal(is, links[i].Keys) {
			wrong = fmt.Sprintf("the keys of %T depend on the state: %v, %v", e, is, links[i].Keys)
		}
	}
	for i, e := range events {
		name := fmt.Sprintf("%d %T", len(c.of), e)
		switch of := c.causes.Find(links[i]); {
		case of == "" && !isRoot(s, e):
			wrong = fmt.Sprintf("%T%+v follows from nothing", e, e)
		case of != "" && isRoot(s, e):
			wrong = fmt.Sprintf("%T%+v follows from event %s", e, e, of)
		default:
			c.of = append(c.of, of)
		}
		c.causes.Add(links[i], name)
	}
	return wrong
}

// isRoot reports whether an event has no cause: it was observed, requested by an operator, or recorded when a process
// took over.
func isRoot(s *remediator.State, e remediator.Event) bool {
	switch e := e.(type) {
	case remediator.ClockSetBack, remediator.EtcdReported, remediator.DefragmentationWaits, remediator.DefragmentationStarted, remediator.Registered, remediator.Claimed, remediator.PolicyMassFailurePassed, remediator.MassFailurePassed,
		remediator.HoldSet, remediator.HoldReleased, remediator.AbortRequested:
		return true
	case remediator.MachineMarked:
		u := s.Unhealthy[e.Machine.UID]
		return u == nil || u.Mark.State == ""
	default:
		return false
	}
}

// TestLinks checks that a decision that waited for another machine or for an operator has that event as its cause.
func TestLinks(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	one, two := remediator.Subject{Name: "m1", UID: "m1"}, remediator.Subject{Name: "m2", UID: "m2"}
	marked := func(m remediator.Subject) remediator.Event {
		return remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Source: remediator.FromPolicy}
	}
	decided := func(m remediator.Subject, v remediator.Verdict, rule string) remediator.Event {
		return remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: v, Rule: rule}}
	}
	var s remediator.State
	var c chain
	for i, step := range []struct {
		event remediator.Event
		of    string
	}{
		{marked(one), ""},
		{marked(two), ""},
		{decided(one, remediator.Surge, "d"), "0 remediator.MachineMarked"},
		{remediator.SurgeRequested{Machine: one, Method: remediator.Surge}, "2 remediator.Decided"},
		{decided(two, remediator.Wait, "one-at-a-time"), "1 remediator.MachineMarked"},
		{remediator.AbortRequested{Machine: one}, ""},
		{remediator.CancelStarted{Cause: remediator.Aborted}, "5 remediator.AbortRequested"},
		{remediator.Cancelled{Cause: remediator.Aborted}, "6 remediator.CancelStarted"},
		{decided(one, remediator.Wait, "aborted"), "7 remediator.Cancelled"},
		{decided(two, remediator.Surge, "d"), "7 remediator.Cancelled"},
		{remediator.SurgeRequested{Machine: two, Method: remediator.Surge}, "9 remediator.Decided"},
		{remediator.MachineMarkCleared{Machine: two, Cause: remediator.Recovered}, "1 remediator.MachineMarked"},
		{remediator.CancelStarted{Cause: remediator.Recovered}, "11 remediator.MachineMarkCleared"},
		{decided(one, remediator.Wait, "policy-mass-failure"), "5 remediator.AbortRequested"},
		{remediator.PolicyMassFailurePassed{}, ""},
		{decided(one, remediator.Surge, "d"), "14 remediator.PolicyMassFailurePassed"},
	} {
		if wrong := c.add(&s, []remediator.Event{step.event}); wrong != "" {
			t.Error(wrong)
		}
		s.Apply(step.event, at.Add(time.Duration(i)*time.Minute))
		if got := c.of[len(c.of)-1]; got != step.of {
			t.Errorf("event %d (%T): cause = %q, want %q", i, step.event, got, step.of)
		}
	}
}
