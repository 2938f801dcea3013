package e2e

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestEpochs closes epochs of the log while a run waits for its operator, under a daemon that continues and is killed with -9: the run ends
// as if nothing had happened, and the log is one.
func TestEpochs(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const ns = "epochs"
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func() *scuted.Daemon {
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t)})
		harness.Must(t, d.WaitReady(ctx))
		return d
	}
	succeeded := func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded }
	ask := func(name string) {
		question(ctx, t, shared.blue, ns, name)
		untilRun(ctx, t, shared.blue, ns, name, asks)
	}
	decide := func(name string) {
		t.Helper()
		o.run(ctx, t, 0, []string{"succeed of task ask decided by"}, "decide", "run", name, "-n", ns, "--task", "ask", "--action", "succeed", "--reason", "go on", "--nats", o.nats)
		untilRun(ctx, t, shared.blue, ns, name, succeeded)
	}
	closeEpoch := func(number string) {
		t.Helper()
		o.run(ctx, t, 0, []string{"closed: epoch " + number}, "log", "close", "--nats", o.nats, "--reason", "a test")
	}

	d := life()
	ask("first")
	ask("second")
	closeEpoch("1")
	harness.Must(t, d.WaitReady(ctx))
	decide("first")
	ask("third")
	harness.Must(t, d.Kill(ctx))

	d = life()
	closeEpoch("2")
	decide("second")
	harness.Must(t, d.Kill(ctx))

	d = life()
	decide("third")
	o.run(ctx, t, 0, []string{"SCUTE_2", "SCUTE_3"}, "log", "epochs", "--nats", o.nats)
	o.run(ctx, t, 0, []string{"without a gap"}, "log", "replay", "--nats", o.nats)
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))
	o.run(ctx, t, 0, []string{"without a gap"}, "log", "replay", "--log", dir)
}
