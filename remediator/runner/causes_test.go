package runner_test

import (
	"slices"
	"strings"
	"testing"

	"scute.dev/aggregate"
	"scute.dev/remediator"
)

// caused checks that each event of an owner names an earlier event as its cause, except claims and observations.
func caused(t *testing.T, l aggregate.Log, owner remediator.Owner) {
	t.Helper()
	earlier := make(map[string]bool)
	roots := []string{"registered", "claimed", "machine-marked"}
	for _, r := range records(t, l, owner) {
		events, err := r.Events()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			name := strings.Split(strings.TrimPrefix(e.Type, "dev.scute.remediation."), ".")[0]
			if !earlier[e.Causation] && !(e.Causation == "" && slices.Contains(roots, name)) {
				t.Errorf("event %s %s of %s has the cause %q", e.ID, e.Type, owner.Name, e.Causation)
			}
			earlier[e.ID] = true
		}
	}
}
