package e2e

import (
	"testing"
	"time"

	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestTargetRestarted moves to a management cluster whose API server was away. Its controllers find their watches again one kind at a time,
// and one that knows a MachineSet, and not yet its Machines, would make another one. Nothing is made or removed in the cloud.
func TestTargetRestarted(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "to-restarted"
	shared.cluster(ctx, t, shared.blue, testbed.Cluster{Namespace: ns, Name: "prod", ControlPlanes: 1, Workers: 2})
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	w := shared.witness(ctx, t)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	side := shared.green.Side
	harness.Must(t, side.KillAPIServer(ctx))
	time.Sleep(15 * time.Second) // so long that the next try of a watch comes well after the API server
	harness.Must(t, side.StartAPIServer(ctx))
	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "prod-to-green", shared.green, "prod"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase %s: %s", over.Status.Phase, over.Status.Message)
	}
	t.Logf("moved in %s", over.Status.FinishedAt.Sub(over.Status.StartedAt.Time).Round(time.Second))
	harness.Must(t, side.WaitAvailable(ctx, ns, "prod"))
	w.clean(ctx, t)
}
