package testbed_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"

	"scute.dev/test/testbed"
)

// TestWitnessOfAMove moves a cluster there and back with clusterctl. Without faults this move must not change the
// cloud, and afterwards the receiving side must manage the cluster.
func TestWitnessOfAMove(t *testing.T) {
	bed := testbed.StartForTest(t, testbed.Options{})
	blue, green := bed.Side("blue"), bed.Side("green")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := blue.CreateCluster(ctx, testbed.Tiny("fleet", "tiny")); err != nil {
		t.Fatal(err)
	}
	if err := blue.WaitAvailable(ctx, "fleet", "tiny"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "none"))
	mover, err := clusterctl.New(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []struct{ from, to *testbed.Side }{{blue, green}, {green, blue}} {
		before, err := bed.Cloud().Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mark := bed.Cloud().Mark()
		started := time.Now()
		if err := mover.Move(ctx, clusterctl.MoveOptions{
			FromKubeconfig: clusterctl.Kubeconfig{Path: way.from.KubeconfigPath()},
			ToKubeconfig:   clusterctl.Kubeconfig{Path: way.to.KubeconfigPath()},
			Namespace:      "fleet",
		}); err != nil {
			t.Fatal(err)
		}
		moved := time.Since(started)
		if err := way.to.WaitAvailable(ctx, "fleet", "tiny"); err != nil {
			t.Fatal(err)
		}
		if err := way.from.WaitGone(ctx, "fleet", "tiny"); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s to %s: moved in %s, available after %s", way.from.Name(), way.to.Name(), moved.Round(time.Millisecond), time.Since(started).Round(time.Millisecond))
		after, err := bed.Cloud().Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := before.Diff(after); len(diff) > 0 {
			t.Errorf("the move changed the cloud:\n%s", strings.Join(diff, "\n"))
		}
		journal, err := bed.Cloud().Since(mark)
		if err != nil {
			t.Fatal(err)
		}
		if r := journal.Replacements(); len(r) > 0 {
			t.Errorf("the move replaced machines:\n%s", r)
		}
	}
}
