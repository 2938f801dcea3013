package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testPlaces() Places {
	return Places{Clusters: []string{"fleet/a", "fleet/b"}, Roamer: "roam/c", Sides: []string{"blue", "green"}}
}

func TestTheSameSeedGivesTheSameFaults(t *testing.T) {
	first, again := Plan(7, time.Hour, testPlaces()), Plan(7, time.Hour, testPlaces())
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if slices.Equal(first, Plan(8, time.Hour, testPlaces())) {
		t.Error("Plan with another seed has the same faults")
	}
	began := map[Kind]int{}
	for _, f := range first {
		began[f.Kind]++
	}
	for _, k := range Kinds() {
		if began[k] == 0 {
			t.Errorf("no fault of kind %s in an hour", k)
		}
	}
}

func TestFaultsEndInTime(t *testing.T) {
	for seed := range uint64(50) {
		faults := Plan(seed, 5*time.Minute, testPlaces())
		if len(faults) < 30 {
			t.Errorf("seed %d: %d faults in five minutes, want at least 30", seed, len(faults))
		}
		for i, f := range faults {
			if f.Number != i+1 || f.At+f.For > 5*time.Minute || f.Where == "" || i > 0 && f.At < faults[i-1].At {
				t.Errorf("seed %d: bad fault %+v", seed, f)
			}
		}
	}
}

func TestOnlySomeKinds(t *testing.T) {
	for _, f := range Plan(1, time.Hour, testPlaces(), Moved, ScutedKilled) {
		if f.Kind != Moved && f.Kind != ScutedKilled {
			t.Errorf("fault of another kind: %s", f)
		}
	}
	if faults := Plan(1, time.Hour, testPlaces(), "nothing"); faults != nil {
		t.Errorf("Plan with an unknown kind = %v, want none", faults)
	}
}

// TestBudget checks that no two faults use the members that a control plane can lose at the same time, and that at most
// one server of each side is down.
func TestBudget(t *testing.T) {
	natureOf := map[Kind]nature{}
	for _, n := range natures() {
		natureOf[n.Kind] = n
	}
	for seed := range uint64(50) {
		until := map[string]time.Duration{}
		for _, f := range Plan(seed, time.Hour, testPlaces()) {
			n := natureOf[f.Kind]
			if n.uses == "" {
				continue
			}
			key := fmt.Sprint(n.uses, f.Where)
			if f.At < until[key] {
				t.Fatalf("seed %d: %s while another fault uses the %s until %s", seed, f, n.uses, until[key])
			}
			until[key] = f.At + f.For + n.after
			if moved := n.at == roamer; moved != strings.HasPrefix(f.Where, "roam/") && n.at != anyCluster {
				t.Fatalf("seed %d: bad target of %s", seed, f)
			}
		}
	}
}

// TestCalmBeforeMoves checks that a cluster has no faults just before a move that would require a remediation first.
func TestCalmBeforeMoves(t *testing.T) {
	moves, during := 0, 0
	for seed := range uint64(20) {
		faults := Plan(seed, time.Hour, testPlaces())
		for i, m := range faults {
			if !m.Kind.moves() {
				continue
			}
			moves++
			for _, f := range faults[:i] {
				if f.Where == m.Where && !f.Kind.moves() && f.At+f.For > m.At-calmness {
					t.Fatalf("seed %d: %s at %s is too close to %s at %s", seed, f, f.At, m, m.At)
				}
			}
			if i+1 < len(faults) && faults[i+1].Where == m.Where {
				during++
			}
		}
	}
	if moves < 100 || during < 5 {
		t.Errorf("%d moves and %d faults right after one, want at least 100 and 5", moves, during)
	}
}
