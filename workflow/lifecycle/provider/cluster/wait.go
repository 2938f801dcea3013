package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const (
	pollFirst = 300 * time.Millisecond
	pollMax   = 3 * time.Second
)

// WaitAvailable waits until a cluster is settled: all its objects exist, are healthy and match their specs.
func WaitAvailable(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	return wait(c, manager, spec, "to be available", settled.State.Problems, checkPresent)
}

// wait reads the cluster until missing returns nothing, or never returns the reason why the wait cannot succeed. It retries failed reads, because API
// servers restart while a cluster is created.
func wait(
	c *sequence.Context, manager access.ClusterRef, spec provider.Cluster, what string,
	missing func(settled.State) []string, never func(settled.State, provider.Cluster) error,
) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	return poll(c, "cluster "+spec.Namespace+"/"+spec.Name+" "+what, func(ctx context.Context) ([]string, error) {
		s, err := readState(ctx, on, spec.Namespace, spec.Name)
		if err != nil {
			return nil, err
		}
		return missing(s), never(s, spec)
	})
}

// checkPresent returns an error if the Cluster is gone or is being deleted, so that a wait for it cannot succeed.
func checkPresent(s settled.State, spec provider.Cluster) error {
	name := spec.Namespace + "/" + spec.Name
	switch {
	case s.Object == nil:
		return task.Final(errors.New("Cluster " + name + " no longer exists: it was deleted, or moved to another cluster"))
	case s.Object.GetDeletionTimestamp() != nil:
		return task.Final(errors.New("Cluster " + name + " is being deleted"))
	default:
		return nil
	}
}

// poll calls read until it returns nothing missing or a final error. When the context ends, the error names what is still missing. While it waits,
// other runs may use the worker of this run.
func poll(c *sequence.Context, what string, read func(context.Context) (missing []string, err error)) error {
	pause, last := pollFirst, ""
	for {
		why, err := read(c)
		if err == nil && len(why) == 0 || task.IsFinal(err) {
			return err
		}
		if err != nil && c.Err() == nil {
			why = []string{err.Error()}
		}
		c.YieldSlot()
		if now := strings.Join(why, "; "); now != "" && now != last {
			last = now
			c.Progress("waiting for " + what + ": " + now)
		}
		if access.Sleep(c, pause) != nil {
			return fmt.Errorf("waiting for %s: %w: %s", what, context.Cause(c), last)
		}
		pause = min(pause*5/4, pollMax)
	}
}
