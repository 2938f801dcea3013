package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/internal/earlier"
)

// TestPast checks that an object is shown at a commit as a replay up to that commit shows it, and that objects that
// began later are not listed.
func TestPast(t *testing.T) {
	log, _ := earlier.Extract(t, "../..")
	show := func(args ...string) (shown map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(scutectl(t, 0, append(args, "--log", log, "-o", "json")...)), &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	for _, c := range []struct{ noun, namespace, name, aggregate string }{
		{"move", "killed-before-every-write", "before-every-write", "move/fleet-1/killed-before-every-write.jsonl"},
		{"move", "fleet", "back-17", "move/fleet/back-17/uid"},
		{"run", "fleet", "rolling-back", "run/fleet/rolling-back/1"},
	} {
		now := show("log", "replay", "--aggregate", c.aggregate)
		last := int(now["sequence"].(float64))
		for seq := last - int(now["commits"].(float64)) + 1; seq <= last; seq += 7 {
			at := fmt.Sprint(seq)
			want := show("log", "replay", "--aggregate", c.aggregate, "--at", at)[c.noun]
			got := show("get", c.noun, c.name, "-n", c.namespace, "--at", at)
			if diff := cmp.Diff(want, any(got)); diff != "" {
				t.Errorf("%s at %s (-replay +get):\n%s", c.aggregate, at, diff)
			}
		}
	}

	const began = 502 // the first remediation of the owners turn-...
	if out := scutectl(t, 0, "get", "remediations", "-A", "--log", log, "--at", fmt.Sprint(began-1)); strings.Contains(out, "turn-") {
		t.Errorf("at the commit before:\n%s", out)
	}
	at := fmt.Sprint(began + 1) // a commit of another remediation
	is := scutectl(t, 0, "describe", "remediation", "m2", "-n", "turn-01", "--log", log, "--at", at)
	if !strings.Contains(is, "Surging") && !strings.Contains(is, "Marked") {
		t.Errorf("at %s:\n%s", at, is)
	}
}
