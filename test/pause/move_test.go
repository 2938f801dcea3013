package pause

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestBesideMoves checks that a move of a Cluster that a Pause holds is refused before anything is changed, and names
// the Pause. A Pause of a Cluster that is being moved waits, names the move, and pauses the Cluster when the move has
// ended.
func TestBesideMoves(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	const namespace = "moved"
	cluster(ctx, t, namespace, "a")
	harness.Must(t, shared.blue.PutTarget(ctx, namespace, shared.green))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	first := create(ctx, t, namespace, "first", "a")
	until(ctx, t, namespace, first.Name, acknowledged)
	before := version(ctx, t, namespace, "a")
	harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(namespace, "refused", shared.green, "a")))
	over, err := shared.blue.Wait(ctx, namespace, "refused", scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseFailed || !named(over.Status.Findings, "it is paused by Pause moved/first") {
		t.Errorf("phase = %s, want Failed: %s: %+v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	if now := version(ctx, t, namespace, "a"); now != before {
		t.Errorf("the refused move changed the Cluster: from %s to %s", before, now)
	}
	remove(ctx, t, first)
	want(ctx, t, namespace, "a", false, 0)

	blockMove(ctx, t, namespace, "a", `""`)
	moving := scuted.NewMove(namespace, "moving", shared.green, "a")
	harness.Must(t, shared.blue.Create(ctx, moving))
	_, err = shared.blue.Wait(ctx, namespace, moving.Name, func(m *v1alpha1.Move) bool { return m.Status.Phase == mover.PhaseAwaitingAcks })
	harness.Must(t, err)
	second := create(ctx, t, namespace, "second", "a")
	until(ctx, t, namespace, second.Name, func(p *v1alpha1.Pause) bool {
		return len(p.Status.WaitingFor) == 1 && strings.Contains(p.Status.WaitingFor[0].Message, "it is held by move moved/moving/") &&
			strings.Contains(p.Status.Message, "it is held by move moved/moving/")
	})
	for _, mark := range marks(ctx, t, namespace, "a") {
		if strings.HasPrefix(mark, object.PausePrefix) {
			t.Errorf("the Pause holds the Cluster during the move: %s", mark)
		}
	}
	harness.Must(t, shared.scute.Patch(ctx, moving, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"abort":true}}`))))
	over, err = shared.blue.Wait(ctx, namespace, moving.Name, scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseRolledBack {
		t.Errorf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
	}
	blockMove(ctx, t, namespace, "a", "null")
	until(ctx, t, namespace, second.Name, acknowledged)
	want(ctx, t, namespace, "a", true, 2)
	remove(ctx, t, second)
	want(ctx, t, namespace, "a", false, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}

func named(findings []v1alpha1.MoveFinding, message string) bool {
	for _, f := range findings {
		if f.Severity == string(mover.Error) && f.Message == message && strings.Contains(f.Remedy, "delete that Pause") {
			return true
		}
	}
	return false
}

// version describes the state of a Cluster's pause, and the generation of its spec.
func version(ctx context.Context, t *testing.T, namespace, name string) string {
	t.Helper()
	paused, marks := stands(ctx, t, namespace, name)
	slices.Sort(marks)
	c := &clusterv1.Cluster{}
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c))
	return fmt.Sprintf("generation %d, paused %t with %q", c.Generation, paused, marks)
}

func marks(ctx context.Context, t *testing.T, namespace, name string) []string {
	t.Helper()
	_, marks := stands(ctx, t, namespace, name)
	return marks
}

// blockMove sets the block-move annotation, as a provider does that has work to finish first.
func blockMove(ctx context.Context, t *testing.T, namespace, name, value string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = namespace, name
	harness.Must(t, shared.blue.Side.Client().Patch(ctx, c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+object.BlockMoveAnnotation+`":`+value+`}}}`))))
}
