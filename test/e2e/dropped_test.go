package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestDropped drops the closed epoch of a log, in which a run waits for its operator, and a run, a move and a Pause ended: the run continues and ends.
// What had ended is left alone by a daemon with a snapshot from before, and by one without. Where nothing but the log told of the end, the resource says
// that this was dropped, and can be deleted.
func TestDropped(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const ns = "dropped"
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen, archive := ports.AddressForTest(t), filepath.Join(t.TempDir(), "archive")
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func() *scuted.Daemon {
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t), Args: []string{"--snapshot-every", "1"}})
		harness.Must(t, d.WaitReady(ctx))
		return d
	}
	ask := func(name string) {
		question(ctx, t, shared.blue, ns, name)
		untilRun(ctx, t, shared.blue, ns, name, asks)
	}
	decide := func(name string) {
		t.Helper()
		o.run(ctx, t, 0, []string{"succeed of task ask decided by"}, "decide", "run", name, "-n", ns, "--task", "ask", "--action", "succeed", "--reason", "a test", "--nats", o.nats)
		untilRun(ctx, t, shared.blue, ns, name, func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	}
	d := life()
	ask("waits")
	ask("over")
	decide("over")
	before := endedBefore(ctx, t, ns, "over")
	o.run(ctx, t, 0, []string{"closed: epoch 1"}, "log", "close", "--nats", o.nats, "--reason", "a test")
	o.run(ctx, t, 2, []string{"stop the daemon"}, "log", "drop", "--through", "1", "--archive", archive, "--reason", "a test", "--yes")
	harness.Must(t, d.Kill(ctx))

	drop := []string{"log", "drop", "--through", "1", "--archive", archive, "--reason", "a test", "--yes", "--log", dir}
	o.run(ctx, t, 1, []string{archive}, drop...)
	o.run(ctx, t, 0, nil, "backup", "log", archive, "--log", dir)
	o.run(ctx, t, 0, []string{"dropped: epoch 1", "1 of kind run"}, drop...)

	d = life()
	before.remains(ctx, t, "after the drop")
	decide("waits")
	ask("later")
	harness.Must(t, d.Kill(ctx))
	harness.Must(t, os.RemoveAll(filepath.Join(dir, "snapshots")))
	before.forgets(ctx, t)
	d = life()
	before.await(ctx, t, "says that its end was dropped", func() bool {
		return isDropped(before.run.Status.Message) && isDropped(before.move.Status.Message)
	})
	before.isGone(ctx, t)
	harness.Must(t, errors.Join(before.c.Delete(ctx, &before.run), before.c.Delete(ctx, &before.move)))
	harness.Await(ctx, t, "what was dropped can be deleted", func() string { return left(ctx, before) })
	decide("later")
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))
	o.run(ctx, t, 0, []string{"Replayed"}, "log", "replay", "--verify", "--log", dir)
}

func isDropped(message string) bool {
	return strings.Contains(message, "was dropped from the event log")
}

// left says what is there of what was deleted.
func left(ctx context.Context, p *past) string {
	for _, o := range []client.Object{&p.run, &p.move, &p.pause} {
		if err := p.c.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			return o.GetName() + " is there"
		}
	}
	return ""
}
