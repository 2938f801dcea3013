package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/inventory"
)

const logFolder = "scute-log"

// aims returns the phases in which scuted is killed.
func aims() []mover.Phase { return []mover.Phase{mover.PhaseCreating, mover.PhaseDeleting} }

// move requests the move as a user would, kills scuted twice, and waits for the end.
func (d *demo) move(ctx context.Context) error {
	d.options.LogDir = filepath.Join(d.folder, logFolder)
	d.options.Args = []string{"--move-workers", "1"}
	if err := d.start(ctx); err != nil {
		return err
	}
	d.story.Good("scuted runs, slowed down to one call at a time (process %d, its log in folder %s)", d.daemon.PID(), logFolder)
	if err := d.ctl(ctx, d.blue.Side, "create", "move", moveName, "-n", fleet, "--cluster", cluster, "--to-kubeconfig", targetFile); err != nil {
		return err
	}
	for _, phase := range aims() {
		if err := d.kill(ctx, phase); err != nil {
			return err
		}
		if err := d.start(ctx); err != nil {
			return err
		}
		d.story.Say("scuted runs again, as process %d, and continues by itself", d.daemon.PID())
	}
	over, err := d.follow(ctx, func(*v1alpha1.Move) bool { return false })
	if err != nil {
		return err
	}
	d.over = over
	if over.Status.Phase != mover.PhaseSucceeded {
		return fmt.Errorf("the move ended %s: %s", over.Status.Phase, over.Status.Message)
	}
	d.story.Good("%s: %s, in %s with both deaths", over.Status.Phase, over.Status.Message, over.Status.FinishedAt.Sub(over.Status.StartedAt.Time).Round(time.Second))
	return nil
}

// start starts scuted on blue.
func (d *demo) start(ctx context.Context) (err error) {
	if d.daemon, err = d.blue.Start(d.options); err != nil {
		return err
	}
	return d.daemon.WaitReady(ctx)
}

// kill waits until some of a phase is done, but by far not all, and kills scuted with SIGKILL. It counts the objects
// themselves, because the status lags behind. At the end the log shows whether the kill happened in the intended phase.
func (d *demo) kill(ctx context.Context, phase mover.Phase) error {
	m, err := d.follow(ctx, func(*v1alpha1.Move) bool { return d.within(ctx, phase) })
	if err != nil {
		return err
	}
	if m.Status.FinishedAt != nil {
		return fmt.Errorf("the move was over before scuted could be killed in %s: %s: %s", phase, m.Status.Phase, m.Status.Message)
	}
	pid := d.daemon.PID()
	if err := d.daemon.Kill(ctx); err != nil {
		return err
	}
	d.story.Hit("kill -9 %d: scuted is dead, in the middle of %s", pid, phase)
	source, err := inventory.Take(ctx, d.blue.Side, fleet)
	if err != nil {
		return err
	}
	target, err := inventory.Take(ctx, d.green.Side, fleet)
	if err != nil {
		return err
	}
	d.story.Say("at this moment blue has %d of the objects and green %d; the log says:", len(source.Names), len(target.Names))
	return d.ctl(ctx, d.blue.Side, "get", "move", moveName, "-n", fleet, "--log", logFolder)
}

// within reports whether a quarter of the objects of a phase have been created or deleted.
func (d *demo) within(ctx context.Context, phase mover.Phase) bool {
	all := len(d.source.Names)
	if phase == mover.PhaseCreating {
		copies, err := inventory.Take(ctx, d.green.Side, fleet)
		return err == nil && len(copies.Names) > all/4
	}
	left, err := inventory.Take(ctx, d.blue.Side, fleet)
	return err == nil && len(left.Names) < all-all/4
}

// follow prints the phase of the move until done returns true or the move has ended.
func (d *demo) follow(ctx context.Context, done func(*v1alpha1.Move) bool) (*v1alpha1.Move, error) {
	c, err := d.blue.Client()
	if err != nil {
		return nil, err
	}
	live := d.story.Live("%s", mover.PhasePending)
	defer live.Done()
	m := &v1alpha1.Move{}
	for {
		err := c.Get(ctx, client.ObjectKey{Namespace: fleet, Name: moveName}, m)
		switch {
		case err == nil && (done(m) || m.Status.FinishedAt != nil):
			return m, nil
		case err == nil && d.daemon.Exited() != nil:
			return nil, d.daemon.Exited()
		case err == nil:
			live.Set("%s: %s", m.Status.Phase, m.Status.Message)
		case ctx.Err() == nil:
			return nil, fmt.Errorf("reading the Move: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("following the Move: %w: it is in %s: %s (see %s)", ctx.Err(), m.Status.Phase, m.Status.Message, d.daemon.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
