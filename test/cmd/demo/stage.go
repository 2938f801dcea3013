package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/inventory"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// targetFile is the file with green's kubeconfig for a user of blue.
const targetFile = "green.kubeconfig"

// prepare starts the management clusters and installs scute on both.
func (d *demo) prepare(ctx context.Context) (err error) {
	live := d.story.Live("building scute")
	defer live.Done()
	if d.programs, err = scuted.Build(ctx, d.story.Lines()); err != nil {
		return err
	}
	live.Set("starting etcd, kube-apiserver and the Cluster API controllers, twice")
	if d.bed, err = testbed.Start(ctx, testbed.Options{Log: d.story.Lines()}); err != nil {
		return err
	}
	live.Set("installing scute's chart on both")
	if d.blue, err = scuted.Install(ctx, d.bed.Side("blue"), d.programs); err != nil {
		return err
	}
	if d.green, err = scuted.Install(ctx, d.bed.Side("green"), d.programs); err != nil {
		return err
	}
	d.story.Good("scute's chart is on both; scuted gets the permissions of its ServiceAccount and no more")
	d.folder = filepath.Join(d.bed.Logs(), "demo")
	if err := os.Mkdir(d.folder, 0o700); err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(d.folder, targetFile), d.green.Target, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of green: %w", err)
	}
	return d.chooseAddresses()
}

// chooseAddresses reserves the daemon's ports. They stay reserved while it is dead: no outgoing connection uses them.
func (d *demo) chooseAddresses() (err error) {
	if d.ports, err = ports.Reserve(); err != nil {
		return err
	}
	for _, address := range []*string{&d.options.Listen, &d.options.Health} {
		port, err := d.ports.One()
		if err != nil {
			return err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return nil
}

// create creates the cluster on blue and waits until it is available.
func (d *demo) create(ctx context.Context) error {
	_, err := d.blue.Side.CreateCluster(ctx, testbed.Cluster{
		Namespace: fleet, Name: cluster, ControlPlanes: controlPlanes, Workers: workers, Topology: true, MachineHealthCheck: true,
	})
	if err != nil {
		return err
	}
	d.story.Say("cluster %s/%s on blue: %d control planes, %d workers, managed by a ClusterClass", fleet, cluster, controlPlanes, workers)
	if err := d.waitMachines(ctx, d.blue.Side, controlPlanes+workers); err != nil {
		return err
	}
	if d.source, err = inventory.Take(ctx, d.blue.Side, fleet); err != nil {
		return err
	}
	d.story.Good("its %d machines run; blue has %d objects of it", controlPlanes+workers, len(d.source.Names))
	if d.cloud, err = d.bed.Cloud().Snapshot(ctx); err != nil {
		return err
	}
	d.mark = d.bed.Cloud().Mark()
	// Without the namespace scute would create it, but could not try any object in it beforehand.
	return d.green.Side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}})
}

// waitMachines waits until so many machines are ready and the cluster is Available.
func (d *demo) waitMachines(ctx context.Context, on *testbed.Side, want int) error {
	live := d.story.Live("looking at the machines on %s", on.Name())
	defer live.Done()
	for ctx.Err() == nil {
		n, err := ready(ctx, on)
		if err != nil {
			return fmt.Errorf("looking at the machines on %s: %w", on.Name(), err)
		}
		live.Set("machines ready on %s: %d of %d", on.Name(), n, want)
		if n == want {
			return on.WaitAvailable(ctx, fleet, cluster)
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // a last check, for the reasons
	defer cancel()
	return errors.Join(fmt.Errorf("waiting for %d machines on %s: %w", want, on.Name(), ctx.Err()), on.WaitAvailable(look, fleet, cluster))
}

// ready returns the number of the cluster's machines that are ready.
func ready(ctx context.Context, on *testbed.Side) (int, error) {
	machines := &clusterv1.MachineList{}
	err := on.Client().List(ctx, machines, client.InNamespace(fleet), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	n := 0
	for i := range machines.Items {
		if conditions.IsTrue(&machines.Items[i], clusterv1.MachineReadyCondition) {
			n++
		}
	}
	return n, err
}
