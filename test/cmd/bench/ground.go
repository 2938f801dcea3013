package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/scuted"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// patience bounds a wait for something that takes seconds, or a minute on a busy machine.
const patience = 5 * time.Minute

// ground is the measured system: a management cluster with the chart installed and the real daemon, which is idle.
type ground struct {
	bed    *testbed.Bed
	side   *testbed.Side
	admin  client.WithWatch // does not cache, and knows the kinds of Cluster API and of scute
	daemon *scuted.Daemon
	logDir string // of the daemon's event log
}

// onGround calls do with a new bed, and stops the bed.
func (b *bench) onGround(ctx context.Context, opts testbed.Options, do func(context.Context, *ground) error) (err error) {
	opts.Sides, opts.Log = []string{"blue"}, b.progress
	bed, err := testbed.Start(ctx, opts)
	if err != nil {
		return err
	}
	g := &ground{bed: bed, side: bed.Side("blue")}
	defer func() {
		if err != nil && ctx.Err() == nil {
			bed.Keep()
		}
		err = errors.Join(err, g.close())
	}()
	if err := g.install(ctx, b.programs); err != nil {
		return err
	}
	return do(ctx, g)
}

func (g *ground) install(ctx context.Context, programs scuted.Programs) error {
	scheme, err := stack.NewScheme()
	if err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	in, err := scuted.Install(ctx, g.side, programs)
	if err != nil {
		return err
	}
	if g.admin, err = client.NewWithWatch(g.side.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if g.logDir, err = in.NewLogDir(); err != nil {
		return err
	}
	if err := until(ctx, "scute's kinds are served", func(ctx context.Context) (string, error) {
		if err := g.admin.List(ctx, &v1alpha1.RepairPolicyList{}); err != nil {
			return err.Error(), nil //nolint:nilerr // it is what is waited for
		}
		return "", nil
	}); err != nil {
		return err
	}
	g.daemon, err = in.Start(scuted.DaemonOptions{LogDir: g.logDir})
	return err
}

func (g *ground) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if g.daemon != nil {
		errs = append(errs, g.daemon.Stop(ctx))
	}
	return errors.Join(append(errs, g.bed.Stop())...)
}

// until polls until nothing is missing.
func until(ctx context.Context, what string, missing func(context.Context) (string, error)) error {
	return within(ctx, patience, what, missing)
}

// within polls like until, with another time limit.
func within(ctx context.Context, bound time.Duration, what string, missing func(context.Context) (string, error)) error {
	return looking(ctx, 200*time.Millisecond, bound, what, missing)
}

// looking polls like within, with another interval.
func looking(ctx context.Context, every, bound time.Duration, what string, missing func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for {
		now, err := missing(ctx)
		switch {
		case ctx.Err() != nil: // the reason of the last poll is more useful
		case err != nil:
			return fmt.Errorf("waiting until %s: %w", what, err)
		case now == "":
			return nil
		default:
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w: %s", what, ctx.Err(), last)
		case <-tick.C:
		}
	}
}
