package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// death is one SIGKILL, and where the move stood.
type death struct {
	phase v1alpha1.MovePhase
	done  int
	of    int
}

// move asks for the move as a user would, kills scuted twice, and waits for the end.
func (d *demo) move(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	d.story.Good("scuted runs, its event log in a folder, every acknowledged event synced to disk")
	if err := d.ctl(ctx, "move", "create", moveName, "-n", fleet, "--cluster", cluster, "--to-secret", "green/value"); err != nil {
		return err
	}
	for _, aim := range []struct {
		phase v1alpha1.MovePhase
		done  func(v1alpha1.MoveCounts) (int, int)
	}{
		{mover.PhaseCreating, func(c v1alpha1.MoveCounts) (int, int) { return c.Created, c.Objects }},
		{mover.PhaseDeleting, func(c v1alpha1.MoveCounts) (int, int) { return c.Deleted, c.ToDelete }},
	} {
		m, err := d.follow(ctx, func(m *v1alpha1.Move) bool {
			done, of := aim.done(m.Status.Counts)
			return m.Status.Phase == aim.phase && done > of/5
		})
		if err != nil {
			return err
		}
		if err := d.daemon.Kill(ctx); err != nil {
			return err
		}
		done, of := aim.done(m.Status.Counts)
		d.deaths = append(d.deaths, death{phase: m.Status.Phase, done: done, of: of})
		d.story.Hit("kill -9 scuted in phase %s, with %d of %d done", m.Status.Phase, done, of)
		if scute := m.Status.FinishedAt; scute != nil {
			return fmt.Errorf("the move was over (%s) before scuted could be killed in phase %s", m.Status.Message, aim.phase)
		}
		if err := d.start(ctx); err != nil {
			return err
		}
		d.story.Say("scuted runs again, and goes on by itself")
	}
	over, err := d.follow(ctx, func(m *v1alpha1.Move) bool { return m.Status.FinishedAt != nil })
	if err != nil {
		return err
	}
	d.over = over
	if over.Status.Phase != mover.PhaseSucceeded {
		return fmt.Errorf("phase %s: %s", over.Status.Phase, over.Status.Message)
	}
	d.story.Good("%s, in %s with both deaths", over.Status.Message, over.Status.FinishedAt.Sub(over.Status.StartedAt.Time).Round(time.Second))
	return nil
}

// follow shows where the move stands until done says so, or until it is over.
func (d *demo) follow(ctx context.Context, done func(*v1alpha1.Move) bool) (*v1alpha1.Move, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	c, err := d.blue.Client()
	if err != nil {
		return nil, err
	}
	live := d.story.Live("the move")
	defer live.Done()
	for m := (&v1alpha1.Move{}); ; {
		if err := c.Get(ctx, client.ObjectKey{Namespace: fleet, Name: moveName}, m); err != nil {
			return nil, err
		}
		if done(m) || m.Status.FinishedAt != nil {
			return m, nil
		}
		live.Set("%s: %s", m.Status.Phase, m.Status.Message)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the move does not get on: %s: %s: %w", m.Status.Phase, m.Status.Message, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ctl runs scutectl as a user of blue, and shows the command and what it prints.
func (d *demo) ctl(ctx context.Context, args ...string) error {
	line := "scutectl"
	for _, arg := range args {
		line += " " + arg
	}
	d.story.Command(line)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.programs.Ctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.blue.Side.KubeconfigPath())
	cmd.Stdout, cmd.Stderr = d.story.Out, d.story.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}
