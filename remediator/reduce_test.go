package remediator_test

import (
	"path/filepath"
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/remediator"
)

const year = 366 * 24 * time.Hour

// TestForgetAnOwner checks that an owner is reduced to its identity a year after its last remediation, unless something
// is in progress or retained.
func TestForgetAnOwner(t *testing.T) {
	owner := remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "cp", UID: "0123", Cluster: "prod"}
	m := remediator.Subject{Name: "m", UID: "m"}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	marked := remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Since: at}
	cleared := remediator.MachineMarkCleared{Machine: m, Cause: remediator.Recovered}
	begun := remediator.SurgeRequested{Machine: m, Method: remediator.Surge, Attempt: 1}
	for name, c := range map[string]struct {
		events []remediator.Event
		never  bool
	}{
		"nothing was begun":           {events: []remediator.Event{marked, cleared}},
		"one that succeeded":          {events: []remediator.Event{marked, begun, remediator.Succeeded{}, cleared}},
		"one that was cancelled":      {events: []remediator.Event{marked, begun, remediator.Cancelled{Cause: remediator.TimedOut}, cleared}},
		"a mass failure that passed":  {events: []remediator.Event{remediator.PolicyMassFailurePassed{}, remediator.MassFailurePassed{Domain: "a"}}},
		"a machine that is unhealthy": {events: []remediator.Event{marked}, never: true},
		"one in progress":             {events: []remediator.Event{marked, begun}, never: true},
		"an order to abort":           {events: []remediator.Event{marked, cleared, remediator.AbortRequested{Machine: m}}, never: true},
		"a hold":                      {events: []remediator.Event{marked, cleared, remediator.HoldSet{Machine: m}}, never: true},
		"an alarm of etcd":            {events: []remediator.Event{remediator.EtcdReported{Problems: []remediator.EtcdProblem{{Kind: "NoSpace"}}}}, never: true},
		"a defragmentation":           {events: []remediator.Event{remediator.DefragmentationStarted{Node: "n"}}, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s remediator.State
			s.Apply(remediator.Registered{Owner: owner}, at)
			for _, e := range c.events {
				s.Apply(e, at)
			}
			if whole := s.Clone(); remediator.Forget(whole, at.Add(year-time.Second)) {
				t.Error("Forget = true within a year")
			}
			before := s.Clone()
			if got := remediator.Forget(&s, at.Add(year)); got == c.never {
				t.Errorf("Forget = %v after a year", got)
			}
			if s.Owner != owner || c.never && len(s.Unhealthy) != len(before.Unhealthy) || !c.never && len(s.Unhealthy)+len(s.History)+len(s.Starts) > 0 {
				t.Errorf("state after Forget = %+v", s)
			}
		})
	}
	if remediator.Forget(new(remediator.State), at) {
		t.Error("Forget = true for an unknown owner")
	}
}

// TestForgetInTheMiddle checks, on saved histories, that nothing is forgotten within an hour, and nothing that is due
// or in progress is ever forgotten.
func TestForgetInTheMiddle(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no histories", err)
	}
	forgotten, catalog := 0, remediator.NewCatalog()
	for _, file := range files {
		events, err := pinned.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		var s remediator.State
		for i, stored := range events {
			e, err := catalog.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(e, stored.Time)
			if remediator.Forget(s.Clone(), stored.Time.Add(time.Hour)) && len(s.Unhealthy)+len(s.History) > 0 {
				t.Errorf("%s: forgotten an hour after event %d", file, i)
			}
			open := remediator.HasPending(&s) || len(remediator.ProgressOf(&s)) > 0
			if later := s.Clone(); remediator.Forget(later, stored.Time.Add(2*year)) {
				forgotten++
				if open {
					t.Errorf("%s: forgotten after event %d, while something is in progress", file, i)
				}
			}
		}
	}
	if forgotten == 0 {
		t.Error("Forget never returned true")
	}
}
