// Command soak injects random faults on the real stack and checks invariants. See package
// scute.dev/test/soak. It ends by itself. Its exit status is 0 if everything held, 1 if not, 130
// after Ctrl-C.
//
//	soak -duration 5m -seed 1
//	soak -duration 1m -seed 1 -faults moved,scuted-killed
//	soak -duration 5m -seed 1 -plan     prints the faults and ends
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"scute.dev/test/soak"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// options are the options of the command line.
type options struct {
	duration time.Duration
	seed     uint64
	kinds    []soak.Kind
	planOnly bool
}

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return exitUsage
	}
	faults := soak.Plan(o.seed, o.duration, places(), o.kinds...)
	if o.planOnly {
		for _, f := range faults {
			fmt.Printf("%s %s\n", f.At, f)
		}
		return 0
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore) // a second Ctrl-C stops the cleanup
	err = run(ctx, o, faults)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "soak: interrupted; nothing is left behind")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		return exitFailed
	}
	return 0
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 5*time.Minute, "how long faults happen; preparing and settling come on top")
	flags.Uint64Var(&o.seed, "seed", 0, "of the faults: the same seed gives the same ones; 0 is a random one, which is printed")
	kinds := flags.String("faults", "", "only these kinds, with commas; all of them if empty: "+join(soak.Kinds()))
	flags.BoolVar(&o.planOnly, "plan", false, "print the faults and end")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, kind := range strings.FieldsFunc(*kinds, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(soak.Kinds(), soak.Kind(kind)) {
			return o, fmt.Errorf("-faults: there is no %q: choose among %s", kind, join(soak.Kinds()))
		}
		o.kinds = append(o.kinds, soak.Kind(kind))
	}
	if o.duration <= 0 || flags.NArg() > 0 {
		return o, fmt.Errorf("-duration is %s and the arguments are %v: it must be above 0, and there are none", o.duration, flags.Args())
	}
	for o.seed == 0 {
		o.seed = uint64(rand.Uint32()) //nolint:gosec // any number will do
	}
	return o, nil
}

func join(kinds []soak.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ",")
}
