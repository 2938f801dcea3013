package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/test/scuted"
)

// holds tells of a check, and counts those that do not hold.
func (d *demo) holds(ok bool, good, bad string) {
	if ok {
		d.story.Good("%s", good)
		return
	}
	d.failed++
	d.story.Bad("%s", bad)
}

// check looks at both sides and at the cloud.
func (d *demo) check(ctx context.Context) error {
	phases := make([]string, 0, len(d.deaths))
	for _, x := range d.deaths {
		phases = append(phases, fmt.Sprintf("%s (%d of %d)", x.phase, x.done, x.of))
	}
	d.holds(len(d.deaths) == 2 && d.deaths[0].phase == mover.PhaseCreating && d.deaths[1].phase == mover.PhaseDeleting,
		"scuted was killed while it worked: in "+strings.Join(phases, " and in "), "the kills missed their phases: "+strings.Join(phases, ", "))

	live := d.story.Live("waiting until green says that the cluster is Available")
	err := d.green.Side.WaitAvailable(ctx, fleet, cluster)
	live.Done()
	if err != nil {
		return err
	}
	if err := d.checkCloud(ctx); err != nil {
		return err
	}
	left, _, err := count(ctx, d.blue)
	if err != nil {
		return err
	}
	d.holds(left == 0, "the source is empty: nothing of the cluster is left on blue", fmt.Sprintf("%d objects are left on blue", left))
	there, marked, err := count(ctx, d.green)
	if err != nil {
		return err
	}
	d.holds(there >= d.over.Status.Counts.Objects && marked == 0,
		fmt.Sprintf("the target has all %d objects, awake, none with a mark of scute's", d.over.Status.Counts.Objects),
		fmt.Sprintf("the target has %d objects of %d, %d of them still marked or paused", there, d.over.Status.Counts.Objects, marked))
	return d.checkControllers(ctx)
}

// checkCloud compares what stands for the machines themselves. It is done before the target's controllers are given
// work of their own.
func (d *demo) checkCloud(ctx context.Context) error {
	after, err := d.bed.Cloud().Snapshot(ctx)
	if err != nil {
		return err
	}
	diff := d.before.Diff(after)
	d.holds(len(diff) == 0, fmt.Sprintf("the cloud holds the same %d things as before, none of them made anew", len(d.before)), "the cloud changed: "+strings.Join(diff, "; "))
	journal, err := d.bed.Cloud().Since(d.mark)
	if err != nil {
		return err
	}
	bad := journal.Replacements()
	d.holds(len(bad) == 0, fmt.Sprintf("its journal of %d writes since then shows no machine made and none removed", len(journal)), "its journal:\n"+bad.String())
	return nil
}

// checkControllers lets the target's controllers work: the cluster has not only arrived, it lives.
func (d *demo) checkControllers(ctx context.Context) error {
	admin := d.green.Side.Client()
	c := &clusterv1.Cluster{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: fleet, Name: cluster}, c); err != nil {
		return err
	}
	patch := client.MergeFrom(c.DeepCopy())
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(int32(workers + 1))
	if err := admin.Patch(ctx, c, patch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	live := d.story.Live("asking green for one worker more")
	defer live.Done()
	for {
		n, err := ready(ctx, d.green)
		if err != nil {
			return fmt.Errorf("waiting for one worker more: %w", err)
		}
		if n == controlPlanes+workers+1 {
			d.holds(true, fmt.Sprintf("green's controllers work: %d workers became %d", workers, workers+1), "")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("green's controllers made no worker: %d machines are ready: %w", n, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// count counts the objects of Cluster API in the namespace, and those that bear a mark of scute's or are paused.
func count(ctx context.Context, on *scuted.Installation) (all, marked int, err error) {
	c, err := kube.Connect(on.Side.Name(), on.Side.Config())
	if err != nil {
		return 0, 0, err
	}
	types, err := c.Movable(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, typ := range types {
		err := c.List(ctx, typ, fleet, func(u *unstructured.Unstructured) error {
			o := object.Observe(u)
			if typ.Plain() && o.ClusterName == "" {
				return nil
			}
			all++
			if o.Mark != "" || o.Touched || o.PausedByUser || o.Cluster != nil && o.Cluster.Paused || o.Paused == object.True {
				marked++
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return all, marked, nil
}

// timeline shows the log's story: every start of scuted is a claim.
func (d *demo) timeline(ctx context.Context) error {
	return d.ctl(ctx, "move", "describe", moveName, "-n", fleet, "--nats", "nats://"+d.options.Listen)
}

func (d *demo) summary() {
	phases := make([]string, 0, len(d.deaths))
	for _, x := range d.deaths {
		phases = append(phases, string(x.phase))
	}
	slices.Sort(phases)
	d.story.Title("")
	d.story.Good("every check held: %s, scuted killed in %s, no machine noticed", d.over.Status.Message, strings.Join(phases, " and "))
	d.story.Say("next: docs/getting-started.md to move a cluster of yours, docs/design/mover.md for how it works")
}
