package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"scute.dev/test/scuted"
)

// longest bounds a group. A group takes some twenty minutes when everything is built.
const longest = 150 * time.Minute

// The groups.
const (
	groupMove        = "move"
	groupRemediation = "remediation"
)

// bench has the outputs and the size of the measurement.
type bench struct {
	out, progress io.Writer
	start         time.Time
	programs      scuted.Programs
	group         string // the measured group

	rounds   int           // of each method of a surge
	clusters int           // that are watched
	steady   time.Duration // how long memory must stay the same
	only     string        // "surge", "watch", "outage", or "" for all
	// unlimited removes Cluster API's own limit of one reconcile per object and second. The owner's waits are then
	// shorter than in any installation, and scute's share is largest.
	unlimited bool

	moveClusters string // numbers of moved clusters, one measurement for each
	moveRounds   int    // of each mover
	moveNear     bool   // without the longer round trip
	moveFar      bool   // only with the longer round trip, and without clusterctl
	moveAlone    bool   // without comparisons
}

// figure prints one result.
func (b *bench) figure(name string, value float64, unit string) {
	format := "%.2f"
	if value >= 100 {
		format = "%.0f"
	}
	fmt.Fprintf(b.out, "bench %s.%s "+format+" %s\n", b.group, name, value, unit)
}

// say prints progress, and how busy the machine is.
func (b *bench) say(format string, args ...any) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("?")
	}
	average, _, _ := strings.Cut(string(load), " ")
	fmt.Fprintf(b.progress, "%6.1fs (load %s) %s\n", time.Since(b.start).Seconds(), strings.TrimSpace(average), fmt.Sprintf(format, args...))
}

func main() {
	b := &bench{out: os.Stdout, progress: os.Stderr, start: time.Now()}
	flag.IntVar(&b.rounds, "rounds", 7, "surges of each kind, by scute and by hand")
	flag.IntVar(&b.clusters, "clusters", 1000, "clusters of three control plane machines that are watched")
	flag.DurationVar(&b.steady, "steady", 130*time.Second, "how long memory stays the same before it counts; the runtime collects every two minutes")
	flag.StringVar(&b.only, "only", "", "surge, watch or outage; all of them if empty")
	flag.BoolVar(&b.unlimited, "unlimited", false, "surges without Cluster API's limit of one reconcile of an object in a second")
	flag.StringVar(&b.moveClusters, "move-clusters", "10", "how many clusters of 45 objects are moved; several numbers with commas measure how the time grows")
	flag.IntVar(&b.moveRounds, "move-rounds", 3, "moves by scute and by clusterctl")
	flag.BoolVar(&b.moveNear, "move-near", false, "leaves out the moves with a longer round trip")
	flag.BoolVar(&b.moveFar, "move-far", false, "moves with a longer round trip only, by scute and by the floor program, without clusterctl, which takes minutes")
	flag.BoolVar(&b.moveAlone, "move-alone", false, "moves each number of clusters once with scute, and compares it with nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C stops the cleanup
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context) (err error) {
	measure := map[string]func(context.Context) error{groupMove: b.measureMoves, groupRemediation: b.measureRemediation}
	groups := flag.Args()
	if len(groups) == 0 {
		groups = slices.Sorted(maps.Keys(measure))
	}
	for _, group := range groups {
		if measure[group] == nil {
			return fmt.Errorf("there is no group %q; see -h for the flags, and name one of %v or none", group, slices.Sorted(maps.Keys(measure)))
		}
	}
	if b.rounds < 1 || b.clusters < 1 || b.moveRounds < 1 || !slices.Contains([]string{"", "surge", "watch", "outage"}, b.only) {
		return fmt.Errorf("-rounds, -clusters and -move-rounds are 1 or more, and -only is surge, watch or outage")
	}
	if b.programs, err = scuted.Build(ctx, b.progress); err != nil {
		return err
	}
	for _, b.group = range groups {
		ctx, cancel := context.WithTimeout(ctx, longest)
		err := measure[b.group](ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("group %s: %w", b.group, err)
		}
	}
	return nil
}

func (b *bench) measureRemediation(ctx context.Context) error {
	b.say("group remediation: the remediator on the real stack: what it adds to a surge, what it costs at rest, and when a failure domain fails")
	if b.only == "outage" {
		return b.measureOutage(ctx)
	}
	model, err := b.measureSurges(ctx)
	if err != nil || b.only == "surge" {
		return err
	}
	if err := b.measureWatch(ctx, model); err != nil || b.only == "watch" {
		return err
	}
	return b.measureOutage(ctx)
}

// median returns the median of some measurements.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
