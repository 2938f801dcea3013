package pause

import (
	"testing"
	"time"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestOverlap checks that of two Pauses of a Cluster none unpauses it while the other one holds it, even if the daemon
// is killed while both are being acknowledged or released. The last one restores the original state.
func TestOverlap(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "overlap"
	cluster(ctx, t, namespace, "a")
	dir := folder(t)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	first := create(ctx, t, namespace, "first", "a")
	until(ctx, t, namespace, first.Name, acknowledged)
	second := create(ctx, t, namespace, "second", "a")
	harness.Must(t, d.Kill(ctx))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	until(ctx, t, namespace, second.Name, acknowledged)
	want(ctx, t, namespace, "a", true, 3)
	remove(ctx, t, first)
	want(ctx, t, namespace, "a", true, 2)
	if paused, all := pausedMachines(ctx, t, namespace, "a"); paused != all {
		t.Errorf("%d of %d Machines are paused during a Pause, want all", paused, all)
	}
	remove(ctx, t, second)
	want(ctx, t, namespace, "a", false, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}

// TestResumedBetweenTwoPauses checks Clusters that a user had paused and resumes while a Pause holds them. A second
// Pause pauses them again. In the end the state is the one that the user set last, whichever Pause is deleted last.
func TestResumedBetweenTwoPauses(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "resumed"
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
	for _, name := range []string{"a", "b"} {
		cluster(ctx, t, namespace, name)
		userPauses(ctx, t, namespace, name)
		first := create(ctx, t, namespace, "first-"+name, name)
		until(ctx, t, namespace, first.Name, acknowledged)
		applyPaused(ctx, t, namespace, name, false)
		second := create(ctx, t, namespace, "second-"+name, name)
		until(ctx, t, namespace, second.Name, acknowledged)
		want(ctx, t, namespace, name, true, 3)
		if name == "b" {
			first, second = second, first
		}
		remove(ctx, t, first)
		want(ctx, t, namespace, name, true, 2)
		remove(ctx, t, second)
		want(ctx, t, namespace, name, false, 0)
	}
}
