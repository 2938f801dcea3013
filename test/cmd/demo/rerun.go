package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed upgrade.yaml
var upgradeManifest []byte

const (
	upgradeFile = "upgrade.yaml"
	upgradeName = "upgrade-prod"
	upgradeTo   = "v1.36.1"
)

// rerun upgrades the cluster with a command that fails for a real cause, is killed, and is run again.
func (d *demo) rerun(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(d.folder, upgradeFile), upgradeManifest, 0o600); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	if err := d.green.Side.StopControllers(); err != nil {
		return err
	}
	d.story.Hit("green's Cluster API is down: its webhooks refuse every change")
	if err := d.killed(ctx); err != nil {
		return err
	}
	if err := d.ctl(ctx, d.green.Side, "describe", "run", upgradeName, "-n", fleet, "--local"); err != nil {
		return err
	}
	if err := d.green.Side.StartControllers(ctx); err != nil {
		return err
	}
	d.story.Say("the cause is fixed: green's Cluster API runs again; the same command once more")
	if err := d.ctl(ctx, d.green.Side, "run", "-f", upgradeFile, "--local"); err != nil {
		return err
	}
	return d.checkUpgrade(ctx)
}

// killed runs the command until its task fails, and kills it with SIGKILL.
func (d *demo) killed(ctx context.Context) error {
	cmd := d.command(ctx, d.green.Side, "run", "-f", upgradeFile, "--local")
	failing := &awaited{out: d.story.Out, word: "raise-version", then: "webhook", seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = failing, failing
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting scutectl: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-failing.seen:
	case err := <-ended:
		return fmt.Errorf("scutectl ended by itself: %w", errors.Join(err, ctx.Err()))
	}
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing scutectl: %w", err)
	}
	if err := <-ended; err == nil {
		return errors.New("scutectl had succeeded before it could be killed")
	}
	d.story.Hit("kill -9 %d: scutectl is dead, in the middle of the upgrade", cmd.Process.Pid)
	return nil
}

// checkUpgrade checks what the two commands did.
func (d *demo) checkUpgrade(ctx context.Context) error {
	backups, err := os.ReadFile(filepath.Join(d.folder, "backups"))
	if err != nil {
		return fmt.Errorf("looking at the backups: %w", err)
	}
	n := bytes.Count(backups, []byte("\n"))
	d.holds(n == 1, "the back-up was taken once: the second command skipped what was done", fmt.Sprintf("the back-up was taken %d times", n))
	machines := &clusterv1.MachineList{}
	if err := d.green.Side.Client().List(ctx, machines, client.InNamespace(fleet)); err != nil {
		return fmt.Errorf("looking at the machines: %w", err)
	}
	old := 0
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Spec.Version != upgradeTo && m.DeletionTimestamp.IsZero() {
			old++
		}
	}
	d.holds(old == 0 && len(machines.Items) > 0, "every machine is of "+upgradeTo, fmt.Sprintf("%d of %d machines are not of %s", old, len(machines.Items), upgradeTo))
	return nil
}

// awaited forwards output, and closes seen when a line contains two words.
type awaited struct {
	out        io.Writer
	word, then string
	seen       chan struct{}

	mu   sync.Mutex
	line []byte
	told bool
}

// Write checks complete lines.
func (a *awaited) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = append(a.line, p...)
	for {
		line, rest, ok := bytes.Cut(a.line, []byte("\n"))
		if !ok {
			break
		}
		if text := string(line); !a.told && strings.Contains(text, a.word) && strings.Contains(text, a.then) {
			a.told = true
			close(a.seen)
		}
		a.line = rest
	}
	return a.out.Write(p)
}
