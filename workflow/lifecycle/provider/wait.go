package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scute.dev/kube/settled"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const (
	pollFirst = 300 * time.Millisecond
	pollMax   = 3 * time.Second
)

// WaitAvailable waits until the cluster is settled: all its objects exist, are healthy and match their specs.
func (t Target) WaitAvailable() error {
	return t.wait("to be available", settled.State.Problems, checkPresent)
}

// wait reads the cluster until missing returns nothing, or never returns the reason why the wait cannot succeed. It retries failed reads, because API
// servers restart while a cluster is created.
func (t Target) wait(what string, missing func(settled.State) []string, never func(settled.State, Cluster) error) error {
	on, err := t.open()
	if err != nil {
		return err
	}
	return t.poll("cluster "+t.fullName()+" "+what, func() ([]string, error) {
		s, err := t.readFrom(on)
		if err != nil {
			return nil, err
		}
		return missing(s), never(s, t.Cluster)
	})
}

// checkPresent returns an error if the Cluster is gone or is being deleted, so that a wait for it cannot succeed.
func checkPresent(s settled.State, spec Cluster) error {
	switch {
	case s.Object == nil:
		return task.Final(errors.New("Cluster " + spec.fullName() + " no longer exists: it was deleted, or moved to another cluster"))
	case s.Object.GetDeletionTimestamp() != nil:
		return task.Final(errors.New("Cluster " + spec.fullName() + " is being deleted"))
	default:
		return nil
	}
}

// poll calls read until it returns nothing missing or a final error. When the context ends, the error names what is still missing. While it waits,
// other runs may use the worker of this run.
func (t Target) poll(what string, read func() (missing []string, err error)) error {
	pause, last := pollFirst, ""
	for {
		why, err := read()
		if err == nil && len(why) == 0 || task.IsFinal(err) {
			return err
		}
		if err != nil && t.Err() == nil {
			why = []string{err.Error()}
		}
		t.YieldSlot()
		if now := strings.Join(why, "; "); now != "" && now != last {
			last = now
			t.Progress("waiting for " + what + ": " + now)
		}
		if access.Sleep(t, pause) != nil {
			return fmt.Errorf("waiting for %s: %w: %s", what, context.Cause(t), last)
		}
		pause = min(pause*5/4, pollMax)
	}
}
