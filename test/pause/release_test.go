package pause

import (
	"context"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestKilledWhileReleasing kills the daemon while it releases the last of two Pauses, which the API server refuses
// because the webhooks of Cluster API do not answer. The next daemon restores the original state completely.
func TestKilledWhileReleasing(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	const namespace = "released"
	cluster(ctx, t, namespace, "a")
	cluster(ctx, t, namespace, "b")
	userPauses(ctx, t, namespace, "b")
	dir := folder(t)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	first := create(ctx, t, namespace, "first", "a")
	until(ctx, t, namespace, first.Name, acknowledged)
	second := create(ctx, t, namespace, "second", "a", "b")
	until(ctx, t, namespace, second.Name, acknowledged)
	remove(ctx, t, first)

	harness.Must(t, shared.blue.Side.StopControllers())
	t.Cleanup(func() { harness.Must(t, shared.blue.Side.StartControllers(context.WithoutCancel(ctx))) }) // if the test ends early
	harness.Must(t, shared.scute.Delete(ctx, second))
	until(ctx, t, namespace, second.Name, func(p *v1alpha1.Pause) bool {
		return p.Status.Phase == v1alpha1.PauseRestoring && p.Status.Next != ""
	})
	harness.Must(t, d.Kill(ctx))
	want(ctx, t, namespace, "a", true, 2)
	harness.Must(t, shared.blue.Side.StartControllers(ctx))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir})
	gone(ctx, t, second)
	want(ctx, t, namespace, "a", false, 0)
	want(ctx, t, namespace, "b", true, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}
