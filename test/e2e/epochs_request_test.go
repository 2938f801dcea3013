package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestEpochsByRequest has a running daemon close epochs while a run waits for its operator: by the command, and by who has the token of
// operators. What is asked while the daemon is dead is done by the next one. Who has the token of readers cannot ask.
func TestEpochsByRequest(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const ns = "epochs-by-request"
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func(args ...string) *scuted.Daemon {
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t), Args: args})
		harness.Must(t, d.WaitReady(ctx))
		return d
	}
	d := life()
	question(ctx, t, shared.blue, ns, "asks")
	untilRun(ctx, t, shared.blue, ns, "asks", asks)
	for _, number := range []string{"1", "2"} {
		o.run(ctx, t, 0, []string{"closed: epoch " + number}, "log", "close", "--request", "--nats", o.nats, "--reason", "a test")
		question(ctx, t, shared.blue, ns, "after-"+number)
		untilRun(ctx, t, shared.blue, ns, "after-"+number, asks)
	}
	o.run(ctx, t, 0, []string{"requested: the closing of epoch 3"}, "log", "close", "--request", "--wait=false", "--nats", o.nats, "--reason", "a test")
	harness.Must(t, d.Kill(ctx))

	d = life("--log-access", scuted.Namespace+"/scute-log")
	as := func(role string) *eventlog.Log {
		var log *eventlog.Log
		token := func() string {
			var s corev1.Secret
			_ = shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: scuted.Namespace, Name: "scute-log-" + role}, &s) // it is made at some time
			return string(s.Data["token"])
		}
		harness.Await(ctx, t, "the log is reached", func() string {
			var err error
			if log, err = eventlog.Connect(ctx, eventlog.ExternalOptions{URL: o.nats, TokenFrom: token}); err != nil {
				return err.Error()
			}
			return ""
		})
		t.Cleanup(func() { _ = log.Close() })
		return log
	}
	by := as("operator")
	if r, err := by.AwaitClose(ctx, eventlog.CloseRequest{Closing: eventlog.Closing{Epoch: 3}}); err != nil || r.Refused != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	question(ctx, t, shared.blue, ns, "last")
	untilRun(ctx, t, shared.blue, ns, "last", asks)
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if r, err := as("reader").RequestClose(short, eventlog.Closing{Actor: "user/reader", Reason: "a test", Time: time.Now()}); err == nil {
		t.Errorf("a reader asks: %+v", r)
	}
	r, err := by.RequestClose(ctx, eventlog.Closing{Actor: "user/operator", Reason: "a test", Time: time.Now()})
	harness.Must(t, err)
	if r, err = by.AwaitClose(ctx, r); err != nil || r.Refused != "" || r.Epoch != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))

	d = life()
	o.run(ctx, t, 0, []string{"succeed of task ask decided by"}, "decide", "run", "asks", "-n", ns, "--task", "ask", "--action", "succeed", "--reason", "go on", "--nats", o.nats)
	untilRun(ctx, t, shared.blue, ns, "asks", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunSucceeded })
	o.run(ctx, t, 0, []string{"SCUTE_4", "SCUTE_5"}, "log", "epochs", "--nats", o.nats)
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))
	o.run(ctx, t, 0, []string{"without a gap"}, "log", "replay", "--log", dir)
}
