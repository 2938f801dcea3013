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
	lookFirst = 300 * time.Millisecond
	lookMax   = 3 * time.Second
)

// WaitAvailable waits until a cluster is settled: all of it is there, healthy and as its specs want it.
func WaitAvailable(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	return wait(c, manager, spec, "to be available", settled.State.Missing, lost)
}

// wait looks until missing finds nothing, or never says that it cannot end well. A look that fails is not the end of it: API servers come and
// go while a cluster is made.
func wait(
	c *sequence.Context, manager access.ClusterRef, spec provider.Cluster, what string,
	missing func(settled.State) []string, never func(settled.State, provider.Cluster) error,
) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	return poll(c, "cluster "+spec.Namespace+"/"+spec.Name+" "+what, func(ctx context.Context) ([]string, error) {
		s, err := look(ctx, on, spec.Namespace, spec.Name)
		if err != nil {
			return nil, err
		}
		return missing(s), never(s, spec)
	})
}

// lost says why a Cluster that was applied will never be what is waited for.
func lost(s settled.State, spec provider.Cluster) error {
	name := spec.Namespace + "/" + spec.Name
	switch {
	case s.Object == nil:
		return task.Final(errors.New("there is no Cluster " + name + " any more: somebody has deleted it, or moved it away"))
	case s.Object.GetDeletionTimestamp() != nil:
		return task.Final(errors.New("Cluster " + name + " is being deleted"))
	default:
		return nil
	}
}

// poll looks until nothing is missing, or an error is final; the error of the end says what still was. Others work in the place of the run
// meanwhile.
func poll(c *sequence.Context, what string, look func(context.Context) (missing []string, err error)) error {
	pause, last := lookFirst, ""
	for {
		why, err := look(c)
		if err == nil && len(why) == 0 || task.IsFinal(err) {
			return err
		}
		if err != nil && c.Err() == nil {
			why = []string{err.Error()}
		}
		c.OnlyWaits()
		if now := strings.Join(why, "; "); now != "" && now != last {
			last = now
			c.Progress("waiting for " + what + ": " + now)
		}
		if access.Sleep(c, pause) != nil {
			return fmt.Errorf("waiting for %s: %w: %s", what, context.Cause(c), last)
		}
		pause = min(pause*5/4, lookMax)
	}
}
