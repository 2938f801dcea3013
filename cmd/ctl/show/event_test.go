package show_test

import (
	"strings"
	"testing"

	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

// An actor is a name that somebody else's program gave. It must not be able to change what a terminal shows of the other events.
func TestLineDisarmsTheActor(t *testing.T) {
	e := show.Event{Event: eventlog.Event{Actor: "user/jane\x1b[2K\u202e"}, Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/prod/1"}}
	for _, width := range []int{0, 80, 160} {
		v := show.View{Width: width}
		lines, _ := v.Timeline([]show.Event{e})
		for _, line := range append(lines, v.Line(e)) {
			if strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
}
