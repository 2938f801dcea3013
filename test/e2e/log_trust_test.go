package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// question creates a WorkflowRun that waits for an approval.
func question(ctx context.Context, t *testing.T, on *scuted.Installation, namespace, name string) {
	t.Helper()
	c, err := on.Client()
	harness.Must(t, err)
	harness.Must(t, client.IgnoreAlreadyExists(on.Side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	w, err := scuted.NewWorkflowRun(namespace, name, "default", "tasks:\n- {name: ask, kind: Approve, with: {message: 'go on?'}}\n")
	harness.Must(t, err)
	harness.Must(t, c.Create(ctx, w))
}

func untilRun(ctx context.Context, t *testing.T, on *scuted.Installation, namespace, name string, done func(*v1alpha1.WorkflowRun) bool) *v1alpha1.WorkflowRun {
	t.Helper()
	w, err := on.WaitWorkflowRun(ctx, namespace, name, done)
	harness.Must(t, err)
	return w
}

// stalled returns a function that reports whether a WorkflowRun's condition Stalled is True for a reason.
func stalled(reason trust.Reason) func(*v1alpha1.WorkflowRun) bool {
	return func(w *v1alpha1.WorkflowRun) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == string(reason) && strings.Contains(c.Message, "scutectl log reconcile")
	}
}

// asks reports whether a run waits for its approval, and whether its conditions no longer report a stall.
func asks(w *v1alpha1.WorkflowRun) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionStalled)
	return w.Status.Phase == v1alpha1.RunPaused && c != nil && c.Reason == string(v1alpha1.RunPaused)
}

// TestLogOfThePast restores an older copy of the log, and then starts with an empty one. In both cases nothing is
// driven, every resource names the command to run, and work continues after an operator's decision.
func TestLogOfThePast(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "log-of-the-past"
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	listen := ports.AddressForTest(t)
	o := &operator{namespace: ns, nats: "nats://" + listen}
	life := func(dir string) *scuted.Daemon {
		return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: listen})
	}

	d := life(dir)
	question(ctx, t, shared.blue, ns, "first")
	untilRun(ctx, t, shared.blue, ns, "first", asks)
	harness.Must(t, d.Stop(ctx))
	old := filepath.Join(t.TempDir(), "copy")
	harness.Must(t, os.CopyFS(old, os.DirFS(dir)))
	d = life(dir)
	question(ctx, t, shared.blue, ns, "second")
	second := untilRun(ctx, t, shared.blue, ns, "second", asks)
	harness.Must(t, d.Stop(ctx))

	t.Run("it went back", func(t *testing.T) {
		d := life(old)
		for _, name := range []string{"first", "second"} {
			untilRun(ctx, t, shared.blue, ns, name, stalled(trust.WentBack))
		}
		question(ctx, t, shared.blue, ns, "third")
		untilRun(ctx, t, shared.blue, ns, "third", stalled(trust.WentBack))
		o.run(ctx, t, 0, []string{"LogWentBack", "IN THE CLUSTER", "run/" + second.Status.RunID, "is stranded and not started again", "Nothing was recorded"}, "log", "reconcile", "--nats", o.nats)
		o.run(ctx, t, 0, []string{`"reason": "LogWentBack"`, `"name": "run/` + second.Status.RunID, `"recorded": false`}, "log", "reconcile", "--nats", o.nats, "-o", "json")
		untilRun(ctx, t, shared.blue, ns, "third", stalled(trust.WentBack))
		o.run(ctx, t, 0, []string{"Recorded"}, "log", "reconcile", "--yes", "--nats", o.nats)
		untilRun(ctx, t, shared.blue, ns, "first", asks)
		untilRun(ctx, t, shared.blue, ns, "third", asks)
		untilRun(ctx, t, shared.blue, ns, "second", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunStranded })
		o.run(ctx, t, 0, []string{"Nothing needs to be reconciled"}, "log", "reconcile", "--nats", o.nats)
		harness.Must(t, d.Stop(ctx))
	})
	t.Run("it was lost", func(t *testing.T) {
		d := life(t.TempDir())
		untilRun(ctx, t, shared.blue, ns, "first", stalled(trust.Replaced))
		harness.Must(t, d.Stop(ctx))
	})
	t.Run("the newest copy is put back", func(t *testing.T) {
		d := life(old)
		untilRun(ctx, t, shared.blue, ns, "first", asks)
		harness.Must(t, d.Stop(ctx))
	})
}

// TestTwoInstallations runs two daemons with a log each on one management cluster: one acts, the other says who does.
func TestTwoInstallations(t *testing.T) {
	ctx := harness.Deadline(t, 3*time.Minute)
	const ns = "two-installations"
	health := ports.AddressForTest(t)
	acting := harness.Daemon(t, shared.blue, scuted.DaemonOptions{Health: health})
	harness.Must(t, acting.WaitReady(ctx))
	question(ctx, t, shared.blue, ns, "first")
	untilRun(ctx, t, shared.blue, ns, "first", asks)
	other := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: t.TempDir()})
	for {
		var list eventsv1.EventList
		harness.Must(t, shared.blue.Side.Client().List(ctx, &list, inNamespace(trust.LeaseNamespace)))
		found := ""
		for i := range list.Items {
			if list.Items[i].Reason == "AnotherInstallation" {
				found = list.Items[i].Note
			}
		}
		if strings.Contains(found, "uninstall one of the two") {
			break
		}
		pause(ctx, t, 100*time.Millisecond)
	}
	harness.Must(t, acting.Exited())
	harness.Must(t, other.Exited())
	harness.Must(t, acting.WaitReady(ctx))
}

// TestTwoClustersOnOneLog: a log belongs to the management cluster that it began on; a daemon of
// another one does nothing.
func TestTwoClustersOnOneLog(t *testing.T) {
	ctx := harness.Deadline(t, 3*time.Minute)
	const ns = "two-clusters"
	n := startNATS(t)
	harness.Must(t, shared.blue.ForgetLog(ctx))
	harness.Must(t, shared.green.ForgetLog(ctx))
	n.replica(t, "")
	question(ctx, t, shared.blue, ns, "first")
	untilRun(ctx, t, shared.blue, ns, "first", asks)
	n.run(t, shared.green, scuted.DaemonOptions{})
	question(ctx, t, shared.green, ns, "first")
	untilRun(ctx, t, shared.green, ns, "first", stalled(trust.AnotherCluster))
	if w := untilRun(ctx, t, shared.blue, ns, "first", asks); w.Status.FinishedAt != nil {
		t.Error(fmt.Errorf("the run of the first cluster is over: %s", w.Status.Message))
	}
}
