package pause

import (
	"testing"
	"time"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// Of two Pauses that overlap none unpauses while the other holds, also when the daemon is killed while both are acknowledged or
// released. The last one restores what was found.
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
		t.Errorf("%d of %d Machines are at rest while a Pause holds", paused, all)
	}
	remove(ctx, t, second)
	want(ctx, t, namespace, "a", false, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}
