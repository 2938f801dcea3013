package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/test/soak"
	"scute.dev/test/testbed"
)

// run prepares the stage, performs the faults, waits until everything has settled, and checks the result.
func run(ctx context.Context, o options, faults []soak.Fault) (err error) {
	r := newReport(os.Stdout)
	r.say("soak", "seed %d, %s of faults, %d planned", o.seed, o.duration, len(faults))
	chaos, fail := context.WithCancel(ctx)
	defer fail()
	s := &stage{}
	p := newPlayer(s, r, fail)
	defer func() {
		if err != nil && ctx.Err() == nil && s.bed != nil {
			s.bed.Keep()
		}
		err = errors.Join(err, s.close())
	}()
	started := time.Now()
	prepared, cancel := context.WithTimeout(ctx, testbed.StartTimeout)
	defer cancel()
	if err := p.prepareAll(prepared); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	stable, err := lasting(ctx, s.sides[0], places().Roamer)
	if err != nil {
		return err
	}
	r.say("ready", "%d clusters of %d machines on two sides after %s; faults begin", len(clusters()), controlPlanes+workers, time.Since(started).Round(time.Second))
	w := watch(p, stable)
	defer w.end()
	p.play(ctx, chaos, faults)
	sleep(chaos, o.duration-time.Since(w.started))
	if chaos.Err() == nil {
		err = w.afterwards(ctx)
	}
	w.end()
	if err == nil && chaos.Err() == nil {
		err = w.replay(ctx)
	}
	w.summary(o, len(faults))
	if violations := r.violations(); len(violations) > 0 {
		return fmt.Errorf("%d violations with seed %d, the first: %s", len(violations), o.seed, violations[0])
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// prepareAll starts the servers, the daemons and the clusters.
func (p *player) prepareAll(ctx context.Context) error {
	if err := p.prepare(ctx, p.report); err != nil {
		return err
	}
	for _, one := range p.sides {
		one.keeper.report, one.keeper.broken = p.report, p.violated
		if err := keep(context.WithoutCancel(ctx), one.keeper); err != nil {
			return err
		}
	}
	return p.populate(ctx)
}

// afterwards checks what must hold when the faults are over.
func (w *watcher) afterwards(ctx context.Context) error {
	w.report.say("over", "the faults are over; everything is to settle by itself")
	settle := func(what string) bool {
		err := w.settle(ctx, what)
		if ctx.Err() == nil {
			w.held("settles", err)
		}
		return err == nil
	}
	if !settle("after the faults") {
		return ctx.Err()
	}
	if err := w.lasts(ctx); err != nil {
		return err
	}
	settle("after a last broken machine of each cluster")
	w.judge(time.Now().Add(2 * patience)) // the remaining removals
	for _, one := range w.sides {
		one.keeper.mu.Lock()
		for _, life := range one.keeper.lives {
			if judged, err := life.Flat(); judged {
				w.held("flat", err)
			}
		}
		one.keeper.mu.Unlock()
	}
	return ctx.Err()
}

// replay stops the daemons and checks that a replay of their logs has the same result as following them.
func (w *watcher) replay(ctx context.Context) error {
	for _, one := range w.sides {
		stopping, cancel := context.WithTimeout(ctx, time.Minute)
		err := one.keeper.stop(stopping)
		cancel()
		if err != nil {
			return err
		}
		log, err := embedded.Open(ctx, embedded.Options{Dir: one.keeper.options.LogDir})
		if err != nil {
			return err
		}
		again, followed := soak.NewBook(one.Side.Name()), w.books[one.Side.Name()]
		_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
			if r.Seq > followed.Last { // written while the daemon stopped
				_, err := followed.Apply(r)
				if err != nil {
					return err
				}
			}
			_, err := again.Apply(r)
			return err
		})
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
		w.held("replay", soak.Same(followed, again))
	}
	return nil
}
