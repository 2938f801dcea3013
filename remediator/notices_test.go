package remediator

import (
	"strings"
	"testing"
	"time"
)

// TestNoticesAreNoFailures checks that a machine that is about to stop is not counted as a failure until it is also
// broken, and that users are notified of it.
func TestNoticesAreNoFailures(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := Subject{Name: "m1", UID: "m1"}
	var s State
	var told []string
	for _, c := range []struct {
		event Event
		want  int
	}{
		{MachineMarked{Machine: m, State: Failing, Source: FromNotice, Reason: "Machine annotation maintenance 2026-05-01T13:00:00Z", FailureDomain: "a"}, 0},
		{MachineMarked{Machine: m, State: Unhealthy, Source: FromNotice, Reason: "Machine annotation maintenance 2026-05-01T13:00:00Z", FailureDomain: "a"}, 0},
		{MachineMarked{Machine: m, State: Unhealthy, Source: FromNotice, Reason: "Machine annotation maintenance 2026-05-01T13:00:00Z", FailureDomain: "a", Failing: true}, 1},
		{MachineMarked{Machine: m, State: Unhealthy, Source: FromPolicy, Reason: "Node Ready Unknown", FailureDomain: "a"}, 1},
		{MachineMarked{Machine: m, State: Unhealthy, Source: FromNotice, Reason: "Node taint spot", FailureDomain: "a"}, 0},
		{MachineMarkCleared{Machine: m, Cause: Recovered, Reason: "the notice is gone"}, 0},
	} {
		if n, ok := NotificationOf(&s, c.event); ok {
			told = append(told, n.Reason+": "+n.Note)
		}
		s.Apply(c.event, now)
		if all, domain := Total(UsageOf(&s, nil).Unhealthy), UsageOf(&s, nil).Unhealthy["a"]; all != c.want || domain != c.want {
			t.Errorf("after %+v: got %d unhealthy and %d in the failure domain, want %d", c.event, all, domain, c.want)
		}
	}
	want := []string{
		"NoticeSeen: Failing since 0001-01-01T00:00:00Z: about to stop: Machine annotation maintenance 2026-05-01T13:00:00Z (Notice); next: scute replaces the machine from the notice's lead time on",
		"NoticeSeen: Unhealthy since 0001-01-01T00:00:00Z: about to stop: Machine annotation maintenance 2026-05-01T13:00:00Z (Notice); next: scute decides how to replace it",
		"MachineRecovered: the notice is gone",
	}
	if got := strings.Join(told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got notifications\n%s", got)
	}
}
