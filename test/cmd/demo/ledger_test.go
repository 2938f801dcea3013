package main

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func TestLedger(t *testing.T) {
	a, b := object.Ref{Kind: "A", Name: "a"}, object.Ref{Kind: "B", Name: "b"}
	l := &ledger{}
	for _, fact := range []mover.Event{
		mover.Requested{},
		mover.Claimed{Holder: "first"},
		mover.PlanDrafted{First: true, Items: []mover.Item{{Ref: a}, {Ref: b}}},
		mover.Planned{},
		mover.Created{Objects: map[object.Ref]types.UID{a: "1"}},
		mover.Claimed{Holder: "second"},
		mover.Claimed{Holder: "second"}, // the same process again
		mover.Created{Objects: map[object.Ref]types.UID{b: "2"}},
		mover.AllCreated{},
		mover.Verified{},
		mover.Deleted{Objects: []object.Ref{b}},
		mover.Claimed{Holder: "third"},
		mover.Deleted{Objects: []object.Ref{a}},
	} {
		l.apply(fact, time.Time{})
	}
	if len(l.lives) != 3 {
		t.Fatalf("%d lives, want 3: %v", len(l.lives), l.lives)
	}
	for i, want := range []struct {
		phase  mover.Phase
		where  string
		inside bool
	}{
		{mover.PhaseCreating, "Creating (1 of 2)", true},
		{mover.PhaseDeleting, "Deleting (1 of 2)", true},
		{mover.PhaseDeleting, "Deleting (2 of 2)", false}, // nothing remained to be done
	} {
		if where, inside := l.lives[i].died(want.phase); where != want.where || inside != want.inside {
			t.Errorf("life %d: died = %s, %v, want %s, %v", i, where, inside, want.where, want.inside)
		}
	}
	if _, inside := l.lives[0].died(mover.PhaseDeleting); inside {
		t.Error("died reports a death in Creating as one in Deleting")
	}
	if !once(l.created, 2) || !once(l.deleted, 2) {
		t.Errorf("created %v, deleted %v, want each once", l.created, l.deleted)
	}
	l.apply(mover.Deleted{Objects: []object.Ref{a}}, time.Time{})
	if once(l.deleted, 2) || once(l.created, 3) {
		t.Error("once accepts objects that are recorded twice or not at all")
	}
}
