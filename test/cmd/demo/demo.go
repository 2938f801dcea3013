package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/cloud"
	"scute.dev/test/cmd/demo/story"
	"scute.dev/test/inventory"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// The cluster that is moved.
const (
	fleet    = "fleet"
	cluster  = "prod"
	moveName = "prod-to-green"

	controlPlanes = 3
	workers       = 2
)

// demo is the state that the steps share.
type demo struct {
	story       *story.Story
	programs    scuted.Programs
	bed         *testbed.Bed
	blue, green *scuted.Installation

	// The state before the move.
	cloud  cloud.Snapshot
	mark   cloud.Mark
	source inventory.Inventory

	ports   *ports.Block
	options scuted.DaemonOptions
	daemon  *scuted.Daemon
	folder  string // the working directory of commands, with the files that they name

	over         *v1alpha1.Move
	ledger       *ledger
	held, failed int // checks
}

// holds prints the result of a check and counts it.
func (d *demo) holds(ok bool, good, bad string) {
	if ok {
		d.held++
		d.story.Good("%s", good)
		return
	}
	d.failed++
	d.story.Bad("%s", bad)
}

// ctl runs scutectl as a user of a side, and prints the command and its output.
func (d *demo) ctl(ctx context.Context, as *testbed.Side, args ...string) error {
	cmd := d.command(ctx, as, args...)
	cmd.Stdout, cmd.Stderr = d.story.Out, d.story.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("scutectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// command returns a scutectl command of a user of a side.
func (d *demo) command(ctx context.Context, as *testbed.Side, args ...string) *exec.Cmd {
	d.story.Command("scutectl " + strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.programs.Ctl, args...)
	cmd.Dir = d.folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+as.KubeconfigPath())
	return cmd
}

// summary ends the story.
func (d *demo) summary() error {
	if d.failed > 0 {
		return fmt.Errorf("%d of %d checks did not hold", d.failed, d.failed+d.held)
	}
	status := d.over.Status
	d.story.Step("In short")
	d.story.Good("%s in %s, scuted killed %d times; no machine noticed; all %d checks held",
		status.Message, status.FinishedAt.Sub(status.StartedAt.Time).Round(time.Second), len(d.ledger.lives)-1, d.held)
	d.story.Good("the upgrade continued where its command had died")
	d.story.Say("to move a cluster of yours       docs/getting-started.md")
	d.story.Say("how it survives, and its limits  docs/design/mover.md")
	d.story.Say("all that scutectl can do         docs/scutectl.md")
	return nil
}

// close stops everything, also after a failure or Ctrl-C.
func (d *demo) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if d.daemon != nil {
		errs = append(errs, d.daemon.Stop(ctx))
	}
	if d.ports != nil {
		errs = append(errs, d.ports.Release())
	}
	if d.bed != nil {
		errs = append(errs, d.bed.Stop())
	}
	return errors.Join(errs...)
}
