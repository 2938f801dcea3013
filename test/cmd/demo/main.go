package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"scute.dev/test/cmd/demo/story"
)

// longest bounds the whole demo. No step has its own time limit, so that a slow machine does not fail. The demo takes
// one to three minutes when everything is built.
const longest = 25 * time.Minute

const (
	exitFailed      = 1
	exitInterrupted = 130
)

func main() { os.Exit(run()) }

func run() int {
	signalled, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(signalled, restore) // a second Ctrl-C stops the cleanup
	ctx, cancel := context.WithTimeout(signalled, longest)
	defer cancel()

	d := &demo{story: story.New(os.Stdout, os.Getenv)}
	d.story.Title("scute: a running cluster moves between two management clusters, its mover killed twice, and is upgraded by a command that dies")
	err := d.tell(ctx)
	interrupted := signalled.Err() != nil
	if interrupted {
		d.story.Hit("interrupted: stopping everything")
	} else if err != nil && d.bed != nil {
		d.bed.Keep()
	}
	closed := d.close()
	switch {
	case interrupted && closed == nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted; nothing is left behind")
		return exitInterrupted
	case err != nil || closed != nil:
		fmt.Fprintln(os.Stderr, "demo:", errors.Join(err, closed))
		return exitFailed
	}
	return 0
}

// tell runs the steps in order.
func (d *demo) tell(ctx context.Context) error {
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Two management clusters on one cloud", d.prepare},
		{"A cluster that runs", d.create},
		{"The move, and two deaths", d.move},
		{"What the log remembers", d.remember},
		{"The result", d.check},
		{"An upgrade whose command dies, run again", d.rerun},
	} {
		d.story.Step(step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return d.summary()
}
