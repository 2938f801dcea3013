// Command demo moves a cluster between two real management clusters and kills scuted twice on the way, with SIGKILL,
// once while it creates on the target and once while it deletes at the source. It ends with status 0 only if every
// check held: that no machine noticed is seen in the cloud, not claimed.
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

// longest bounds the whole demo; it takes two to four minutes once everything is built.
const longest = 25 * time.Minute

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	d := &demo{story: story.New(os.Stdout, os.Getenv)}
	d.story.Title("scute: a cluster moves between two management clusters, and nothing can stop it")
	err := d.tell(ctx)
	if err == nil && d.failed > 0 {
		err = fmt.Errorf("%d checks did not hold", d.failed)
	}
	if err != nil && ctx.Err() == nil && d.bed != nil {
		d.bed.Keep()
	}
	err = errors.Join(err, d.close())
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything is cleaned up")
		return 130
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		return 1
	}
	d.summary()
	return 0
}

// tell runs the steps in their order.
func (d *demo) tell(ctx context.Context) error {
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Two management clusters on one cloud", d.prepare},
		{"A cluster that runs", d.create},
		{"The move", d.move},
		{"What came of it", d.check},
		{"What the log says", d.timeline},
	} {
		d.story.Step(step.title)
		if err := step.do(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return nil
}
