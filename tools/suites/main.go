package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	root    string
	repeat  int
	burn    int
	lanes   int
	timeout time.Duration
	// rotation is the share of the long matrices that all suites run. If it is empty, the first
	// round runs the share of the day, and each further round runs the next share.
	rotation string
	day      int64
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == burnArgument {
		burn(os.Stdin)
		return 0
	}
	var o options
	flags := flag.NewFlagSet("suites", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", "..", "the checkout")
	flags.IntVar(&o.repeat, "repeat", 0, "run each suite so often, and print a table of the times")
	flags.IntVar(&o.burn, "burn", 0, "meanwhile, so many processes each burn a core")
	flags.IntVar(&o.lanes, "lanes", 2, "so many suites on the real stack run at a time")
	flags.DurationVar(&o.timeout, "timeout", 25*time.Minute, "bounds a suite on the real stack")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	failed, err := o.play(ctx, flags.Args(), stdout)
	if err != nil {
		fmt.Fprintln(stderr, "suites:", err)
		return 2
	}
	if failed {
		return 1
	}
	return 0
}

// play runs the named suites and says whether one of them failed.
func (o *options) play(ctx context.Context, names []string, out io.Writer) (failed bool, err error) {
	if o.repeat < 0 || o.burn < 0 || o.lanes < 1 {
		return false, errors.New("-repeat and -burn must not be negative, -lanes must be 1 or more")
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return false, err
	}
	all, err := catalog(ctx, o)
	if err != nil {
		return false, err
	}
	chosen, err := choose(all, names)
	if err != nil {
		return false, err
	}
	o.rotation, o.day = os.Getenv("ROTATION"), today()
	if o.burn > 0 {
		extinguish, err := ignite(o.burn)
		if err != nil {
			return false, err
		}
		defer extinguish()
		fmt.Fprintf(out, "%d processes burn a core each\n", o.burn)
	}
	results, err := o.perform(ctx, chosen, out)
	if err != nil {
		return false, err
	}
	if o.repeat > 0 {
		fmt.Fprint(out, "\n", repeats(results))
	} else {
		fmt.Fprint(out, "\n", table(results))
	}
	for _, r := range results {
		failed = failed || r.failed
	}
	if err := ctx.Err(); err != nil {
		return true, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return failed, nil
}

// today is the number of the day, which is the share of the long matrices that the suites take; see test/rotation.
func today() int64 { return time.Now().Unix() / int64((24*time.Hour)/time.Second) }
