package pause

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestPause checks that a Pause pauses the Clusters, reports when every object has acknowledged and by which signals,
// and that its deletion restores the original state.
func TestPause(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "held"
	cluster(ctx, t, namespace, "a")
	cluster(ctx, t, namespace, "b")
	userPauses(ctx, t, namespace, "b")
	harness.Await(ctx, t, "the Machines of b are at rest for the user", func() string {
		if paused, all := pausedMachines(ctx, t, namespace, "b"); paused != all || all == 0 {
			return fmt.Sprintf("%d of %d are", paused, all)
		}
		return ""
	})
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	p := create(ctx, t, namespace, "maintenance", "a", "b")
	now := until(ctx, t, namespace, p.Name, acknowledged)
	want(ctx, t, namespace, "a", true, 2)
	want(ctx, t, namespace, "b", true, 2)
	if paused, all := pausedMachines(ctx, t, namespace, "a"); paused != all || all == 0 {
		t.Errorf("%d of %d Machines are paused, want all", paused, all)
	}
	for _, name := range []string{v1alpha1.ConditionAcknowledged, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(now.Status.Conditions, name); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != now.Generation {
			t.Errorf("condition %s = %+v, want True for the current generation", name, c)
		}
	}
	if s := now.Status; len(s.Clusters) != 2 || s.Clusters[0].FoundPaused || !s.Clusters[1].FoundPaused || s.Clusters[0].Acknowledged < 5 || s.Counts.Pending != 0 {
		t.Errorf("status = %+v", s)
	}
	signals := make(map[string][]string)
	for _, k := range now.Status.Kinds {
		signals[k.Kind] = k.Signals
	}
	t.Logf("signals: %v", signals)
	if len(signals["Machine.cluster.x-k8s.io"]) != 2 { // by condition in a, already held in b
		t.Errorf("signals of the Machines = %q, want 2", signals["Machine.cluster.x-k8s.io"])
	}
	remove(ctx, t, p)
	want(ctx, t, namespace, "a", false, 0)
	want(ctx, t, namespace, "b", true, 0)
	if paused, _ := pausedMachines(ctx, t, namespace, "a"); paused != 0 {
		t.Errorf("%d Machines are still paused", paused)
	}
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}
