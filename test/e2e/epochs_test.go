package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestEpochs closes epochs of the log while runs wait for their operator, under a daemon that continues and is killed with -9: the runs end
// as if nothing had happened, and the log is one. What had ended before is left alone by a daemon that is started with a snapshot, and by
// one without, also where nothing but the log tells of its end.
func TestEpochs(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const ns = "epochs"
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func() *scuted.Daemon {
		d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen, Health: ports.AddressForTest(t), Args: []string{"--snapshot-every", "1"}})
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
	ask("over")
	decide("over")
	before := endedBefore(ctx, t, ns, "over")
	closeEpoch("1")
	harness.Must(t, d.WaitReady(ctx))
	decide("first")
	ask("third")
	harness.Must(t, d.Kill(ctx))

	d = life()
	closeEpoch("2")
	decide("second")
	harness.Must(t, d.Kill(ctx))

	before.forgets(ctx, t)
	d = life()
	before.remains(ctx, t, "with a snapshot")
	ask("fourth")
	harness.Must(t, d.Stop(ctx))

	before.forgets(ctx, t)
	harness.Must(t, os.RemoveAll(filepath.Join(dir, "snapshots")))
	d = life()
	before.remains(ctx, t, "without a snapshot")
	decide("third")
	decide("fourth")
	o.run(ctx, t, 0, []string{"SCUTE_2", "SCUTE_3"}, "log", "epochs", "--nats", o.nats)
	o.run(ctx, t, 0, []string{"without a gap"}, "log", "replay", "--nats", o.nats)
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))
	o.run(ctx, t, 0, []string{"without a gap"}, "log", "replay", "--log", dir)
	o.run(ctx, t, 0, []string{"Replayed"}, "log", "replay", "--verify", "--log", dir)
	before.isGone(ctx, t)
}

// past are resources of which everything has ended: a run, a move and a pause.
type past struct {
	c     client.Client
	run   v1alpha1.WorkflowRun
	move  v1alpha1.Move
	pause v1alpha1.Pause
}

// endedBefore are a run, and a move that is refused and a Pause that is deleted and that somebody else keeps, which are made for it.
func endedBefore(ctx context.Context, t *testing.T, ns, run string) *past {
	t.Helper()
	c, err := shared.blue.Client()
	harness.Must(t, err)
	const kept = "example.com/kept"
	e := &past{c: c, move: *scuted.NewMove(ns, "refused", shared.green, "none")}
	e.pause = v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "over", Finalizers: []string{kept}}, Spec: v1alpha1.PauseSpec{Clusters: []string{"none"}}}
	e.run.Namespace, e.run.Name = ns, run
	harness.Must(t, errors.Join(c.Create(ctx, &e.move), c.Create(ctx, &e.pause)))
	e.await(ctx, t, "has begun", func() bool { return e.pause.Status.PauseID != "" })
	harness.Must(t, c.Delete(ctx, &e.pause))
	e.await(ctx, t, "has ended", e.over)
	return e
}

func (e *past) over() bool {
	return e.run.Status.FinishedAt != nil && e.move.Status.FinishedAt != nil && e.pause.Status.FinishedAt != nil && len(e.pause.Finalizers) == 1
}

// look reads all of them as they are.
func (e *past) look(ctx context.Context) error {
	run, move, pause := client.ObjectKeyFromObject(&e.run), client.ObjectKeyFromObject(&e.move), client.ObjectKeyFromObject(&e.pause)
	e.run, e.move, e.pause = v1alpha1.WorkflowRun{}, v1alpha1.Move{}, v1alpha1.Pause{} // what is not there would not be read over
	return errors.Join(e.c.Get(ctx, run, &e.run), e.c.Get(ctx, move, &e.move), e.c.Get(ctx, pause, &e.pause))
}

func (e *past) await(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	harness.Await(ctx, t, "everything "+what, func() string {
		if err := e.look(ctx); err != nil {
			return err.Error()
		}
		if is() {
			return ""
		}
		return fmt.Sprintf("%s %s; %s %s; %s %s %v", e.run.Status.Phase, e.run.Status.Message, e.move.Status.Phase, e.move.Status.Message, e.pause.Status.Phase, e.pause.Status.Message, e.pause.Finalizers)
	})
}

// forgets takes the end out of the statuses, as if the daemon had been killed before it wrote it.
func (e *past) forgets(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Must(t, e.look(ctx))
	run, move, pause := e.run.DeepCopy(), e.move.DeepCopy(), e.pause.DeepCopy()
	run.Status.Phase, run.Status.FinishedAt = v1alpha1.RunRunning, nil
	move.Status.Phase, move.Status.FinishedAt = v1alpha1.MovePhase("Preflight"), nil
	pause.Status.Phase, pause.Status.FinishedAt = v1alpha1.PauseResuming, nil
	harness.Must(t, errors.Join(e.c.Status().Update(ctx, run), e.c.Status().Update(ctx, move), e.c.Status().Update(ctx, pause)))
}

// remains: the statuses say again what they said, up to the sequence of the log.
func (e *past) remains(ctx context.Context, t *testing.T, how string) {
	t.Helper()
	run, move, pause := e.run.Status, e.move.Status, e.pause.Status
	e.await(ctx, t, "is as it was, "+how, e.over)
	for _, is := range [][2]any{{run, e.run.Status}, {move, e.move.Status}, {pause, e.pause.Status}} {
		if !equality.Semantic.DeepEqual(is[0], is[1]) {
			t.Errorf("%s: it was\n%+v\nand is\n%+v", how, is[0], is[1])
		}
	}
}

// isGone lets the pause's resource go.
func (e *past) isGone(ctx context.Context, t *testing.T) {
	t.Helper()
	harness.Must(t, e.look(ctx))
	e.pause.Finalizers = nil
	harness.Must(t, e.c.Update(ctx, &e.pause))
}
