package remediator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// waitStories maps the name of a wait to a story that leads to it and the event that ends it.
var waitStories = map[string]struct { //nolint:gochecknoglobals // a table
	story, ends string
}{
	"a check":                {"machines 3; policy timeout=5m; node m1 bad; turn", "Decided"},
	"a check of a Node":      {"machines 3; policy check=DiskPressure:True/5m; says m1 DiskPressure True; turn", "Decided"},
	"no Node":                {"machines 3; owner replicas=4; turn; appears a; turn", "MachineMarked State:Unhealthy"},
	"the policy's hold":      {"machines 3; policy hold=10m; node m1 bad; turn", "SurgeRequested"},
	"a step":                 {"machines 3; policy step=reboot/3m; node m1 bad; turn", "EscalationEnded"},
	"no machine":             {"machines 3; node m1 bad; turn", "CancelStarted"},
	"a machine in a rollout": {"machines 3; node m1 bad; turn; rollout t2; turn", "CancelStarted"},
	"worsened":               {"machines 3; policy methods=RolloutSurge,OwnerRemediation; node m1 bad; turn; kubelet m1 dead; turn", "CancelStarted"},
	"not ready":              {"machines 3; node m1 bad; turn; acts; turn", "CancelStarted"},
	"not deleted":            {"machines 3; node m1 bad; turn; acts; turn; joins m4; turn", "CancelStarted"},
	"not gone":               {"machines 3; node m1 bad; turn; acts; turn; joins m4; turn; acts; turn", "Frozen"},
	"the drain":              {"machines 3; policy drain=5m; node m1 bad; turn; acts; turn; joins m4; turn; acts; drains m1; turn", "DrainSkipped"},
	"the volumes":            {"machines 3; policy detach=5m; node m1 bad; turn; acts; turn; joins m4; turn; acts; detaches m1; turn", "VolumeDetachSkipped"},
	"its place":              {"machines 3; kubelet m1 dead; etcd m1 dead; turn; acts; turn; gone m1; turn", "Cancelled"},
	"a worker":               {"owner kind=MachineDeployment; machines 3; node m1 bad; turn; acts; turn; joins m4; turn; acts; turn", "Succeeded"},
	"the sparing":            {"machines 3; policy scale-up=1m; node m1 bad; turn; pass 1m; turn", "VictimSpared"},
	"the new machine":        {"machines 3; policy ready=1m; node m1 bad; turn; acts; turn; pass 1m; turn; pass 1s; turn", "Cancelled"},
	"the cooldown":           {"machines 3; policy scale-up=1m; node m1 bad; turn; pass 1m; turn; pass 30s; turn", "SurgeRequested"},
	"a worker's cooldown":    {"owner kind=MachineDeployment; machines 3; policy scale-up=1m; node m1 bad; turn; pass 1m; turn; pass 30s; turn", "SurgeRequested"},
	"foreign replicas":       {"machines 3; policy methods=Surge; node m1 bad; turn; owner replicas=3; turn", "CancelStarted"},
	"others set replicas":    {"machines 3; policy methods=Surge; node m1 bad; turn; owner replicas=7; turn", "CancelStarted"},
	"a window":               {"machines 3; policy per-window=1 attempts=9 scale-up=1m; node m1 bad; turn; pass 1m; turn; pass 30s; turn; pass 5m; turn", "SurgeRequested"},
	"a window of the fleet":  {"machines 3; policy attempts=9 scale-up=1m; fleet per-window=1; node m1 bad; turn; pass 1m; turn; pass 30s; turn; pass 5m; turn", "SurgeRequested"},
	"a mass failure":         {"machines 5; ledger watched=5 unhealthy=5; node m1 bad; turn; ledger unhealthy=1; turn", "SurgeRequested"},
	"after a fleet failure":  {"machines 3; fleet mass-failure=20%/4 machines=a:10 unhealthy=a:6; node m1 bad; turn; fleet unhealthy=a:1; turn", "SurgeRequested"},
	"a defragmentation":      {"machines 3; policy survey=1m defragment=2m/2m; database m1 900 100 2000; database m2 900 100 2000; database m3 900 100 2000; stalls; turn; pass 2m; turn", "DefragmentationEnded"},
}

// timeUntil plays a story, sets the clock back, and returns how long the wait lasts and whether it
// ends.
func timeUntil(t *testing.T, story, ends string, back time.Duration) (time.Duration, bool) {
	t.Helper()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := newStory(start)
	d, b := &datadriven.TestData{}, &strings.Builder{}
	for part := range strings.SplitSeq(story, "; ") {
		switch words := strings.Fields(part); words[0] {
		case "turn":
			s.turn(t, b)
		case "pass":
			s.world.now = s.world.now.Add(duration(d, t, words[1]))
		default:
			s.apply(t, d, b, words)
		}
	}
	s.world.now = s.world.now.Add(-back)
	if s.world.etcdRequests.Last.After(s.world.now) {
		s.world.etcdRequests.Last = s.world.now // as the runner does
	}
	const step = 5 * time.Second
	for passed := time.Duration(0); passed < 8*time.Hour; passed += step {
		before := len(s.log)
		s.turn(t, b)
		for _, e := range s.log[before:] {
			kind, field, _ := strings.Cut(ends, " ")
			if strings.TrimPrefix(fmt.Sprintf("%T", e.event), "remediator.") == kind && strings.Contains(fmt.Sprintf("%+v", e.event), field) {
				return passed, true
			}
		}
		s.world.now = s.world.now.Add(step)
	}
	return 0, false
}

// TestClockSetBack checks that no wait takes more than twice as long after the clock is set back by hours.
func TestClockSetBack(t *testing.T) {
	for name, w := range waitStories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, ok := timeUntil(t, w.story, w.ends, 0)
			if !ok {
				t.Fatalf("%s does not happen", w.ends)
			}
			got, ok := timeUntil(t, w.story, w.ends, 5*time.Hour)
			if slack := 2*want + time.Minute; !ok || got > slack {
				t.Errorf("the wait took %s after the clock was set back, want about %s (ended: %t)", got, want, ok)
			}
		})
	}
}

// TestRelaxedWhenTheClockIsSetBack checks that a relaxed surge works after the clock is set back. A control plane drops
// its remediation annotation when a machine was created after the annotation's time, which must not hold for machines
// created before the clock was set back.
func TestRelaxedWhenTheClockIsSetBack(t *testing.T) {
	s := newStory(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	d, b := &datadriven.TestData{}, &strings.Builder{}
	s.apply(t, d, b, []string{"machines", "3"})
	s.world.now = s.world.now.Add(-5 * time.Hour)
	s.apply(t, d, b, []string{"kubelet", "m1", "dead"})
	s.turn(t, b)
	if s.apply(t, d, b, []string{"acts"}); !strings.HasSuffix(b.String(), "the owner makes m4\n") {
		t.Error(b.String())
	}
}
