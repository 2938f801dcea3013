package logcmd

import (
	"fmt"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// TestChainOfManyBranches checks that thousands of attempts, each with a branch, need one short line per event.
func TestChainOfManyBranches(t *testing.T) {
	const attempts = 3000
	event := func(id, cause string) kit.Event {
		return kit.Event{Event: eventlog.Event{ID: id, Causation: cause}, Seq: 1}
	}
	var events []kit.Event
	cause := ""
	for i := range attempts {
		started, failed := fmt.Sprintf("started-%d", i), fmt.Sprintf("failed-%d", i)
		events = append(events, event(started, cause), event("progressed", started), event(failed, started))
		cause = failed
	}
	c := newChain(events, func(e kit.Event) bool { return e.ID == "started-0" }, true)
	lines := c.lines(kit.View{})
	if want := 1 + 3*attempts; len(lines) != want {
		t.Errorf("got %d lines, want %d", len(lines), want)
	}
	if size := len(strings.Join(lines, "")) / len(lines); size > 500 {
		t.Errorf("lines have %d bytes on average, want at most 500", size)
	}
}

// TestChainWithoutACause checks that a cause whose commit cannot be read is reported as missing.
func TestChainWithoutACause(t *testing.T) {
	c := newChain([]kit.Event{
		{Seq: 1}, // cannot be read
		{Seq: 2, Event: eventlog.Event{ID: "b/0", Causation: "a/0"}}, {Seq: 2, Event: eventlog.Event{ID: "b/1", Causation: "b/0"}},
	}, func(e kit.Event) bool { return e.ID == "b/1" }, false)
	if got := c.missingCauses(); len(got) != 1 || got[0].ID != "b/0" {
		t.Errorf("lost = %+v, want b/0", got)
	}
}
