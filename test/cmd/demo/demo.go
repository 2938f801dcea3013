package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/cloud"
	"scute.dev/test/cmd/demo/story"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

const (
	fleet    = "fleet"
	cluster  = "prod"
	moveName = "prod-to-green"

	controlPlanes = 3
	workers       = 2
)

// demo is what the steps hand to each other.
type demo struct {
	story       *story.Story
	bed         *testbed.Bed
	programs    scuted.Programs
	blue, green *scuted.Installation

	before cloud.Snapshot
	mark   cloud.Mark

	daemon  *scuted.Daemon
	options scuted.DaemonOptions
	deaths  []death
	over    *v1alpha1.Move
	failed  int
}

// prepare starts the management clusters and installs scute on both.
func (d *demo) prepare(ctx context.Context) (err error) {
	live := d.story.Live("building scute")
	d.programs, err = scuted.Build(ctx, d.story.Lines())
	if err == nil {
		live.Set("starting etcd, kube-apiserver and the Cluster API controllers, twice")
		d.bed, err = testbed.Start(ctx, testbed.Options{Log: d.story.Lines()})
	}
	if err == nil {
		live.Set("installing scute's chart")
		d.blue, err = scuted.Install(ctx, d.bed.Side("blue"), d.programs)
	}
	if err == nil {
		d.green, err = scuted.Install(ctx, d.bed.Side("green"), d.programs)
	}
	live.Done()
	if err != nil {
		return err
	}
	d.story.Good("scute's chart is on both; scuted will have the permissions of its ServiceAccount and no more")
	return nil
}

// create makes the cluster on blue and waits until it runs.
func (d *demo) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	_, err := d.blue.Side.CreateCluster(ctx, testbed.Cluster{
		Namespace: fleet, Name: cluster, ControlPlanes: controlPlanes, Workers: workers, Topology: true, MachineHealthCheck: true,
	})
	if err != nil {
		return err
	}
	d.story.Say("cluster %s/%s on blue: %d control planes, %d workers, a ClusterClass and MachineHealthChecks", fleet, cluster, controlPlanes, workers)
	live := d.story.Live("waiting for its machines")
	available := make(chan error, 1)
	go func() { available <- d.blue.Side.WaitAvailable(ctx, fleet, cluster) }()
	for {
		select {
		case err = <-available:
			live.Done()
			if err != nil {
				return err
			}
			d.story.Good("all %d machines run; the cluster is Available", controlPlanes+workers)
			return d.witness(ctx)
		case <-time.After(300 * time.Millisecond):
			if n, err := ready(ctx, d.blue); err == nil {
				live.Set("waiting for its machines: %d of %d ready", n, controlPlanes+workers)
			}
		}
	}
}

// witness remembers what the cloud holds now, and gets ready what the move needs.
func (d *demo) witness(ctx context.Context) (err error) {
	if d.before, err = d.bed.Cloud().Snapshot(ctx); err != nil {
		return err
	}
	d.mark = d.bed.Cloud().Mark()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}}
	if err := d.green.Side.Client().Create(ctx, namespace); err != nil {
		return err
	}
	return d.blue.PutTarget(ctx, fleet, d.green)
}

// ready counts the machines of the cluster that are.
func ready(ctx context.Context, on *scuted.Installation) (int, error) {
	machines := &clusterv1.MachineList{}
	err := on.Side.Client().List(ctx, machines, client.InNamespace(fleet), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	n := 0
	for _, m := range machines.Items {
		for _, c := range m.Status.Conditions {
			if c.Type == clusterv1.MachineReadyCondition && c.Status == metav1.ConditionTrue {
				n++
			}
		}
	}
	return n, err
}

// start runs scuted on blue. One call at a time makes it slow enough for a kill to be aimed.
func (d *demo) start(ctx context.Context) (err error) {
	if d.options.LogDir == "" {
		d.options.Args = []string{"--move-workers", "1"}
		d.options.LogDir = filepath.Join(d.blue.Side.Logs(), "eventlog")
		if d.options.Listen, err = freeAddress(ctx); err != nil {
			return err
		}
		if d.options.Health, err = freeAddress(ctx); err != nil {
			return err
		}
	}
	if d.daemon, err = d.blue.Start(d.options); err != nil {
		return err
	}
	return d.daemon.WaitReady(ctx)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// close ends everything, also after a failure or Ctrl-C.
func (d *demo) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if d.daemon != nil {
		errs = append(errs, d.daemon.Stop(ctx))
	}
	if d.bed != nil {
		errs = append(errs, d.bed.Stop())
	}
	return errors.Join(errs...)
}
