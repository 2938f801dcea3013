package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/mover"
	"scute.dev/test/cloud"
	"scute.dev/test/inventory"
)

// remember prints the move's history from the log, and reads from it how each scuted process ended.
func (d *demo) remember(ctx context.Context) (err error) {
	if err := d.ctl(ctx, d.blue.Side, "describe", "move", moveName, "-n", fleet, "--nats", "nats://"+d.options.Listen); err != nil {
		return err
	}
	d.ledger, err = readLedger(ctx, d.options.Listen, d.over.Status.MoveID)
	return err
}

// check checks the log, both sides and the cloud.
func (d *demo) check(ctx context.Context) error {
	d.checkLog()
	if err := d.waitMachines(ctx, d.green.Side, controlPlanes+workers); err != nil {
		return err
	}
	if err := d.checkCloud(ctx); err != nil {
		return err
	}
	if err := d.checkSides(ctx); err != nil {
		return err
	}
	return d.checkControllers(ctx)
}

// checkLog checks in the log, which cannot lag behind, that the kills happened in the intended phases and that nothing
// was done twice.
func (d *demo) checkLog() {
	var found, wrong []string
	for i, phase := range aims() {
		if i >= len(d.ledger.lives) {
			break
		}
		where, inside := d.ledger.lives[i].died(phase)
		if found = append(found, where); !inside {
			wrong = append(wrong, fmt.Sprintf("scuted was to die inside %s, it died in %s", phase, where))
		}
	}
	if want := len(aims()) + 1; len(d.ledger.lives) != want {
		wrong = append(wrong, fmt.Sprintf("%d processes claimed the move, not %d", len(d.ledger.lives), want))
	}
	d.holds(len(wrong) == 0, fmt.Sprintf("the log has the claims of %d processes: one died in %s",
		len(d.ledger.lives), strings.Join(found, ", one in ")), strings.Join(wrong, "; "))

	n := d.over.Status.Counts.Objects
	d.holds(d.ledger.state.Phase == mover.PhaseSucceeded && once(d.ledger.created, n) && once(d.ledger.deleted, n),
		fmt.Sprintf("the log has each of the %d objects once as created and once as deleted", n),
		fmt.Sprintf("the log has %d of %d objects as created and %d as deleted, or one of them twice", len(d.ledger.created), n, len(d.ledger.deleted)))
}

// checkCloud compares the machines in the cloud before and after the move, before the target's controllers get work.
func (d *demo) checkCloud(ctx context.Context) error {
	after, err := d.bed.Cloud().Snapshot(ctx)
	if err != nil {
		return err
	}
	diff := d.cloud.Diff(after)
	d.holds(len(diff) == 0, fmt.Sprintf("the cloud before = after: the same %d things, %d machines among them, none of them new", len(d.cloud), machines(d.cloud)),
		"the cloud changed: "+strings.Join(diff, "; "))
	journal, err := d.bed.Cloud().Since(d.mark)
	if err != nil {
		return err
	}
	bad := journal.Replacements()
	d.holds(len(bad) == 0, fmt.Sprintf("the cloud's journal of %d attempts to write since: 0 machines made, 0 removed", len(journal)),
		fmt.Sprintf("the cloud's journal has machines made or removed: %s", bad))
	return nil
}

// machines returns the number of machines in the cloud.
func machines(s cloud.Snapshot) int {
	n := 0
	for name := range s {
		if strings.Contains(name, " "+cloud.MachineKind+" ") {
			n++
		}
	}
	return n
}

// checkSides compares what each side has now with what the source had.
func (d *demo) checkSides(ctx context.Context) error {
	source, err := inventory.Take(ctx, d.blue.Side, fleet)
	if err != nil {
		return err
	}
	d.holds(len(source.Names) == 0, "blue is empty: nothing of the cluster is left there", "left on blue: "+strings.Join(source.Names, ", "))
	target, err := inventory.Take(ctx, d.green.Side, fleet)
	if err != nil {
		return err
	}
	d.holds(slices.Equal(d.source.Names, target.Names), fmt.Sprintf("green has the same %d objects", len(target.Names)),
		fmt.Sprintf("green has %d objects of %d; missing: %s; new: %s", len(target.Names), len(d.source.Names),
			inventory.Missing(d.source.Names, target.Names), inventory.Missing(target.Names, d.source.Names)))
	d.holds(len(target.Touched) == 0, "none of them is paused or has a mark of scute", "not as they should be: "+strings.Join(target.Touched, ", "))
	return nil
}

// checkControllers scales the workers on the target, to prove that its controllers manage the cluster.
func (d *demo) checkControllers(ctx context.Context) error {
	started, mark := time.Now(), d.bed.Cloud().Mark()
	admin := d.green.Side.Client()
	c := &clusterv1.Cluster{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: fleet, Name: cluster}, c); err != nil {
		return fmt.Errorf("asking for one worker more: %w", err)
	}
	patch := client.MergeFrom(c.DeepCopy())
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(int32(workers + 1))
	if err := admin.Patch(ctx, c, patch); err != nil {
		return fmt.Errorf("asking for one worker more: %w", err)
	}
	if err := d.waitMachines(ctx, d.green.Side, controlPlanes+workers+1); err != nil {
		return err
	}
	journal, err := d.bed.Cloud().Since(mark)
	if err != nil {
		return err
	}
	made := journal.Replacements()
	created := made.Where(func(w cloud.Write) bool { return w.Kind == cloud.MachineKind })
	d.holds(len(created) == 1 && created[0].Verb == cloud.Create && created[0].By == d.green.Side.Name(),
		fmt.Sprintf("green's controllers act: workers %d -> %d, the new machine was Ready after %s",
			workers, workers+1, time.Since(started).Round(time.Second)),
		fmt.Sprintf("green's controllers were asked for one worker more; the cloud's journal: %s", made))
	return nil
}
