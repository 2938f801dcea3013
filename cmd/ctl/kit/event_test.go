package kit_test

import (
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/view"
)

// TestLineOfANarrowTerminalHasTheDetail checks that the detail of an event is shown on a narrow terminal.
func TestLineOfANarrowTerminalHasTheDetail(t *testing.T) {
	now := time.Date(2026, 11, 27, 3, 2, 0, 0, time.UTC)
	e := kit.Event{
		Event: eventlog.Event{Time: now.Add(-time.Minute), Actor: "daemon/vm-1"}, Seq: 56, Line: view.Line{Name: "started", Detail: "bounded: attempt 1"},
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "default/timeouts/1"},
	}
	for width, want := range map[int]string{
		60:  "03:01:00  #56     default/timeouts  started  bounded: attem…",
		80:  "03:01:00.000Z  #56     run/default/timeouts  started             bounded: attem…",
		120: "03:01:00.000Z  60s ago    #56     run/default/timeouts  started             bounded: attempt 1",
	} {
		if got := (kit.View{Width: width, Now: now}).Line(e); got != want {
			t.Errorf("with %d columns: got\n%s, want\n%s", width, got, want)
		}
	}
}

// TestLineWithoutControlSequences checks that control sequences in the name of an actor and in a
// message, which another program chose, are removed.
func TestLineWithoutControlSequences(t *testing.T) {
	e := kit.Event{Event: eventlog.Event{Actor: "user/jane\x1b[2K\u202e"}, Line: view.Line{Name: "failed", Detail: "gone\x1b[2J"}, Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/prod/1"}}
	for _, width := range []int{0, 80, 160} {
		v := kit.View{Width: width}
		lines, _ := v.Timeline([]kit.Event{e})
		for _, line := range append(lines, v.Line(e)) {
			if strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("with %d columns: got %q", width, line)
			}
		}
	}
}
