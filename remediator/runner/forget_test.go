package runner_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// forgotten returns a process whose view has dropped the owner, two years after its machine was replaced.
func forgotten(t *testing.T, l *eventlog.Log, w *world) *runner.Runner {
	t.Helper()
	w.failNode(1)
	if err := runUntilDone(t, process(t, "first", l, w), l, w); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * 366 * 24 * time.Hour)
	r := process(t, "second", l, w)
	list := records(t, l, w.facts.Owner.Owner)
	if n := r.View.Owners(); n != 1 || len(list) == 0 {
		t.Fatalf("got %d owners with %d commits", n, len(list))
	}
	r.View.Forget(w.now)
	if n := r.View.Owners(); n != 0 {
		t.Fatalf("got %d owners, want 0", n)
	}
	return r
}

// TestAForgottenOwnerReturns checks that the process reads the log before it writes anything and records the owner
// again, so that a view that has forgotten the owner is complete again.
func TestAForgottenOwnerReturns(t *testing.T) {
	l, w := logtest.Open(t), newWorld("returns")
	r := forgotten(t, l, w)
	before := records(t, l, w.facts.Owner.Owner)
	w.before = func(remediator.Action) error {
		if len(records(t, l, w.facts.Owner.Owner)) == len(before) {
			t.Error("an action was performed before its event was appended")
		}
		return nil
	}
	again := runner.NewRemediations() // an empty view, as if it had forgotten the owner
	w.failNode(0)
	victim := w.facts.Machines[0]
	if err := runUntilDone(t, r, l, w); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range w.problems {
		t.Error(wrong)
	}
	if slices.ContainsFunc(w.facts.Machines, func(m remediator.Machine) bool { return m.UID == victim.UID }) {
		t.Errorf("%s was not replaced", victim.Name)
	}
	for i, record := range records(t, l, w.facts.Owner.Owner)[len(before):] {
		if i == 0 && !slices.Contains(record.Types(), "dev.scute.remediation.registered.v1") {
			t.Errorf("first commit has events %v, want Registered", record.Types())
		}
		if err := again.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	status, ok := again.Status(w.facts.Owner.ID(), victim.UID)
	if !ok || status.FinishedAt == nil || status.Cluster != "returns" || status.Phase != "Succeeded" {
		t.Errorf("view status = %v %+v", ok, status)
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); len(s.History) != 2 {
		t.Errorf("got %d ended remediations, want 2", len(s.History))
	}
}

// TestWhatAForgottenOwnerLeft checks that annotations of a forgotten owner are removed once the log has been read, even
// if there is nothing to decide.
func TestWhatAForgottenOwnerLeft(t *testing.T) {
	l, w := logtest.Open(t), newWorld("left")
	r := forgotten(t, l, w)
	w.facts.Owner.Touched = "an earlier time"
	var written []remediator.ActionType
	w.before = func(a remediator.Action) error { written = append(written, a.Type); return nil }
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); !errors.Is(err, eventlog.ErrConflict) || len(written) > 0 {
		t.Errorf("Reconcile = %v, performed %q, want ErrConflict and no action", err, written)
	}
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil || !slices.Equal(written, []remediator.ActionType{remediator.Touch}) {
		t.Errorf("Reconcile = %v, performed %q", err, written)
	}
}

// TestAnOwnerThatMayBeForgotten checks that an event about an owner that the view may forget at any moment follows the
// owner's identity, even if the view still has the owner.
func TestAnOwnerThatMayBeForgotten(t *testing.T) {
	l, w := logtest.Open(t), newWorld("rests")
	w.failNode(1)
	if err := runUntilDone(t, process(t, "first", l, w), l, w); err != nil {
		t.Fatal(err)
	}
	before := len(records(t, l, w.facts.Owner.Owner))
	w.now = w.now.Add(2 * 366 * 24 * time.Hour)
	w.failNode(0)
	if err := runUntilDone(t, process(t, "second", l, w), l, w); err != nil {
		t.Fatal(err)
	}
	for i, record := range records(t, l, w.facts.Owner.Owner)[before:] {
		if named := slices.Contains(record.Types(), "dev.scute.remediation.registered.v1"); named != (i == 0) {
			t.Errorf("commit %d has events %v", i, record.Types())
		}
	}
}

// TestTheClaimOfAForgottenOwner checks that a process continues with an owner that it claimed, and that its view has
// forgotten and then follows again.
func TestTheClaimOfAForgottenOwner(t *testing.T) {
	l, w := logtest.Open(t), newWorld("claimed")
	w.failNode(1)
	r, applied := process(t, "one", l, w), 0
	turns := func() {
		for range 20 {
			if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			list := records(t, l, w.facts.Owner.Owner)
			for _, record := range list[applied:] {
				if err := r.View.Apply(record); err != nil {
					t.Fatal(err)
				}
			}
			applied = len(list)
			w.owner()
		}
	}
	turns()
	w.now = w.now.Add(2 * 366 * 24 * time.Hour)
	r.View.Forget(w.now)
	if n := r.View.Owners(); n != 0 {
		t.Fatalf("got %d owners, want 0", n)
	}
	w.failNode(0)
	turns()
	if s := stateOf(t, l, w.facts.Owner.Owner); len(s.History) != 2 {
		t.Errorf("got %d ended remediations, want 2", len(s.History))
	}
}
