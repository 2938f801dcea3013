package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestTwoInstallationsAndAMove starts a second installation, with another log, while a move of the first has deleted
// half of its source. The second never acts, not even after the first has stopped.
func TestTwoInstallationsAndAMove(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const name = "half"
	s := strand(ctx, t, "two-installations", []string{name})
	first, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	s.move(ctx, t, name)
	acting := s.held(ctx, t, first, map[string]string{name: "after 5 DELETE"})

	second := emptyDir(t)
	other := harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: second})
	before := versions(objects(ctx, t, shared.blue, s.ns(name)))
	harness.Must(t, acting.Stop(ctx))
	s.distrusts(ctx, t, string(trust.Replaced))
	if after := versions(objects(ctx, t, shared.blue, s.ns(name))); !maps.Equal(before, after) {
		t.Errorf("the second installation wrote at the source:\nbefore %v\nafter %v", before, after)
	}
	harness.Must(t, other.Stop(ctx))
	moves, err := scuted.Faults{Class: "move"}.Commits(ctx, second, scuted.OfKind(eventlog.KindMove))
	harness.Must(t, err)
	if moves > 0 {
		t.Errorf("the log of the second installation has %d commits about a move, want none", moves)
	}

	s.daemon(t, first)
	s.ends(ctx, t, name, mover.PhaseSucceeded)
	s.guard.clean(t)
}

func versions(objects map[string]*unstructured.Unstructured) map[string]string {
	found := make(map[string]string)
	for name, u := range objects {
		found[name] = u.GetResourceVersion()
	}
	return found
}

// TestTwoClustersAndTheirMoves runs two management clusters on one stream of one NATS server, with a Move each. The
// second does nothing until it has its own log, as the status of its Move requests.
func TestTwoClustersAndTheirMoves(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	east, west := testbed.Tiny("east", "tiny"), testbed.Tiny("west", "tiny")
	shared.cluster(ctx, t, shared.blue, east)
	shared.cluster(ctx, t, shared.green, west)
	harness.Must(t, shared.blue.PutTarget(ctx, east.Namespace, shared.green))
	harness.Must(t, shared.green.PutTarget(ctx, west.Namespace, shared.blue))
	w := shared.witness(ctx, t)
	guard := shared.guard(ctx, t, east.Namespace, west.Namespace)
	n := startNATS(t)
	harness.Must(t, shared.blue.ForgetLog(ctx))
	harness.Must(t, shared.green.ForgetLog(ctx))

	n.replica(t, "")
	release := annotation(ctx, t, shared.blue, east.Namespace, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
	harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(east.Namespace, "go", shared.green, "tiny")))
	_, err := shared.blue.Wait(ctx, east.Namespace, "go", func(m *v1alpha1.Move) bool { return len(m.Status.WaitingFor) == 1 })
	harness.Must(t, err)

	stranger := n.run(t, shared.green, scuted.DaemonOptions{})
	trail := auditTrail(t, shared.green) // the cluster's controllers run, and write too
	harness.Must(t, shared.green.Create(ctx, scuted.NewMove(west.Namespace, "go", shared.blue, "tiny")))
	stalled, err := shared.green.Wait(ctx, west.Namespace, "go", func(m *v1alpha1.Move) bool { return stalledBy(m, string(trust.AnotherCluster)) != nil })
	harness.Must(t, err)
	if said := stalledBy(stalled, string(trust.AnotherCluster)).Message; !strings.Contains(said, "its own log") {
		t.Errorf("message of the Move = %s, want one that requests a separate log", said)
	}
	release()
	over, err := shared.blue.Wait(ctx, east.Namespace, "go", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Errorf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, east.Namespace, "tiny"))
	trail.unchanged(t, ofDaemon)

	harness.Must(t, stranger.Stop(ctx))
	harness.Daemon(t, shared.green, scuted.DaemonOptions{LogDir: emptyDir(t)})
	over, err = shared.green.Wait(ctx, west.Namespace, "go", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Errorf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, west.Namespace, "tiny"))
	w.clean(ctx, t)
	guard.clean(t)
}
