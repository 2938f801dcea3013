package mover_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// TestManyRoots checks that the events of a move of 10,000 clusters fit into the log, and that a list that was partly
// stored before a crash is recorded again completely.
func TestManyRoots(t *testing.T) {
	var roots []pause.Root
	for i := range 10_000 {
		r := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: strings.Repeat("n", 63), Name: fmt.Sprintf("%s-%d", strings.Repeat("c", 240), i)}
		roots = append(roots, pause.Root{Ref: r, UID: types.UID(fmt.Sprintf("0b2f3d9e-1111-2222-3333-%012d", i))})
	}
	catalog := mover.NewCatalog()
	s := &mover.State{Phase: mover.PhasePausing}
	for _, cut := range []int{1, 3, 0} { // number of events stored before a crash; 0 is all
		events, err := mover.Decide(s, mover.BaselineRead{Roots: roots}, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			stored, err := catalog.Encode(e)
			if err != nil || len(stored.Data) > 512<<10 {
				t.Fatalf("event %d has %d bytes (error %v)", i, len(stored.Data), err)
			}
			if cut > 0 && i >= cut {
				break
			}
			s.Apply(e, time.Unix(1, 0))
		}
		if want := map[bool]mover.Step{true: mover.RecordBaseline, false: mover.PauseSource}[cut > 0]; mover.Next(s) != want {
			t.Errorf("after %d events the next step is %q, want %q", cut, mover.Next(s), want)
		}
	}
	if len(s.Roots) != len(roots) || s.Roots[0] != roots[0] || s.Roots[9_999] != roots[9_999] {
		t.Errorf("got %d roots, want all", len(s.Roots))
	}
}

// TestTooManyNames checks that a selection too large for one event is refused before anything is changed.
func TestTooManyNames(t *testing.T) {
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", strings.Repeat("c", 240), i)
	}
	events, err := mover.Decide(&mover.State{Phase: mover.PhasePreflight}, mover.PreflightDone{Clusters: names}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	refused, ok := events[0].(mover.Refused)
	if !ok || refused.Findings[0].Field != "spec.selection" {
		t.Errorf("events = %+v, want Refused with spec.selection", events)
	}
}

// TestFinishedMovesAreSmall checks that a finished move keeps only those of its left objects that the status shows.
func TestFinishedMovesAreSmall(t *testing.T) {
	left := make([]mover.ObjectReason, 500)
	s := &mover.State{}
	for _, e := range []mover.Event{mover.Requested{}, mover.PlanDrafted{First: true}, mover.Planned{Excluded: left}, mover.Succeeded{}} {
		s.Apply(e, time.Unix(1, 0))
	}
	if len(s.Left) != 50 || cap(s.Left) > 64 || len(mover.Status(s).NotMoved) != 50 {
		t.Errorf("%d entries are kept and %d shown, want 50", len(s.Left), len(mover.Status(s).NotMoved))
	}
}

// TestClustersOfASelectionOfAll checks that the status names the Clusters of a selection of all, because the spec does
// not.
func TestClustersOfASelectionOfAll(t *testing.T) {
	names := make([]string, 1500)
	for i := range names {
		names[i] = fmt.Sprintf("c-%04d", i)
	}
	for all, want := range map[bool]int{true: 1000, false: 0} {
		s := &mover.State{}
		for _, e := range []mover.Event{mover.Requested{Spec: mover.Spec{All: all}}, mover.PreflightPassed{Clusters: names}, mover.Succeeded{}} {
			s.Apply(e, time.Unix(1, 0))
		}
		if got := mover.SelectedClusters(s); len(got) != want || want > 0 && got[want-1] != names[want-1] {
			t.Errorf("SelectedClusters with all=%t returned %d names", all, len(got))
		}
	}
}

// TestOwnersVersion checks that an owner reference is copied with the owner's current version, rather than with one
// that is no longer served.
func TestOwnersVersion(t *testing.T) {
	cluster := object.Observed{Ref: object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "a"}, UID: "a", Version: "v1beta2", Cluster: &object.ClusterFacts{}}
	machine := object.Observed{
		Ref: object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: "m"}, UID: "m", Version: "v1beta2",
		Owners: []object.Owner{{Ref: cluster.Ref, UID: "a", Version: "v1alpha4"}},
	}
	m := mover.Select([]object.Observed{cluster, machine}, mover.Selection{Namespace: "fleet", All: true})
	if got := m.Objects[1].MemberOwners[0].Version; got != "v1beta2" {
		t.Errorf("owner version = %s, want v1beta2", got)
	}
}
