package cloud

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/ports"
)

func TestJournalAndSnapshot(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := t.Context()
	c := start(t)
	defer stop(t, c)

	blue, green := c.As("blue"), c.As("green")
	blue.AddResourceGroup("fleet/prod")
	green.AddResourceGroup("fleet/prod") // a side that takes over the cluster
	machine := func() *cloudv1.CloudMachine { return &cloudv1.CloudMachine{ObjectMeta: metav1.ObjectMeta{Name: "m"}} }
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	asBlue, asGreen := blue.GetResourceGroup("fleet/prod").GetClient(), green.GetResourceGroup("fleet/prod").GetClient()
	must(t, asBlue.Create(ctx, machine()))
	must(t, asBlue.Create(ctx, node))
	first := snapshot(ctx, t, c)
	mark := c.Mark()

	if err := asGreen.Create(ctx, machine()); err == nil {
		t.Error("creating a machine twice succeeded, want an error")
	}
	must(t, asGreen.Patch(ctx, node, client.MergeFrom(node.DeepCopy()))) // changes nothing
	if diff := first.Diff(snapshot(ctx, t, c)); len(diff) > 0 {
		t.Errorf("difference without a change = %v, want none", diff)
	}
	must(t, asGreen.Delete(ctx, machine()))
	must(t, asBlue.Create(ctx, machine()))
	diff := first.Diff(snapshot(ctx, t, c))
	if len(diff) != 1 || diff[0][:len("replaced fleet/prod CloudMachine m")] != "replaced fleet/prod CloudMachine m" {
		t.Errorf("difference after a machine was recreated with the same name = %v, want it as replaced", diff)
	}
	green.DeleteResourceGroup("fleet/prod")
	if left := snapshot(ctx, t, c); len(left) > 0 {
		t.Errorf("objects after the cluster was deleted = %v, want none", left)
	}

	got, err := c.Since(mark)
	must(t, err)
	write := func(by string, verb Verb, kind, name string, changed bool, reason string) Write {
		return Write{By: by, Verb: verb, Cluster: "fleet/prod", Kind: kind, Name: name, Changed: changed, Error: reason}
	}
	want := Journal{
		write("green", Create, MachineKind, "m", false, "AlreadyExists"),
		write("green", Patch, NodeKind, "n", false, ""),
		write("green", Delete, MachineKind, "m", true, ""),
		write("blue", Create, MachineKind, "m", true, ""),
		write("green", Delete, clusterKind, "fleet/prod", true, ""),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Write{}, "Time")); diff != "" {
		t.Error(diff)
	}
	if r := got.Replacements(); len(r) != 3 {
		t.Errorf("Replacements = %v, want the last three writes", r)
	}
}

func TestJournalForgetsTheOldest(t *testing.T) {
	c := &Cloud{journal: &recorder{}}
	mark := c.Mark()
	for range 2*remembered + 1 {
		c.journal.add(Write{})
	}
	if _, err := c.Since(mark); err == nil {
		t.Error("Since a forgotten write = nil, want an error")
	}
	if got, err := c.Since(c.Mark() - 1); err != nil || len(got) != 1 {
		t.Errorf("Since the last write = %v, %v, want one write", got, err)
	}
	if kept := len(c.journal.writes); kept > 2*remembered {
		t.Errorf("%d writes are kept, want a bound", kept)
	}
}

func start(t *testing.T) *Cloud {
	t.Helper()
	block, err := ports.Reserve()
	must(t, err)
	t.Cleanup(func() { must(t, block.Release()) })
	c, err := Start(t.Context(), block)
	must(t, err)
	return c
}

func stop(t *testing.T, c *Cloud) {
	t.Helper()
	must(t, c.Stop(context.Background()))
}

func snapshot(ctx context.Context, t *testing.T, c *Cloud) Snapshot {
	t.Helper()
	s, err := c.Snapshot(ctx)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
