package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"scute.dev/test/soak"
)

// summary prints what was done and observed.
func (w *watcher) summary(o options, planned int) {
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	out := tabwriter.NewWriter(w.report.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\nsummary\tseed %d, %s of faults\n", o.seed, o.duration)
	fmt.Fprintf(out, "faults\t%d planned, %d begun\n", planned, w.begun)
	for _, k := range soak.Kinds() {
		if t := w.counts[k]; *t != (tally{}) {
			fmt.Fprintf(out, "  %s\t%d begun, %d withheld, %d failed to begin\n", k, t.begun, t.withheld, t.failed)
		}
	}
	fmt.Fprintf(out, "machines\t%d made, removed: %s\n", w.made, counts(w.removed))
	remedies, spurious := 0, 0
	for _, b := range w.books {
		for _, r := range b.Remedies {
			remedies++
			if r.Spurious {
				spurious++
			}
		}
	}
	fmt.Fprintf(out, "remediations\t%d begun, %d of them though no fault was on the machine\n", remedies, spurious)
	fmt.Fprintf(out, "moves\t%s\n", counts(w.moves))
	phases := map[string]int{}
	for _, r := range w.runs {
		phases[string(r.want)]++
	}
	fmt.Fprintf(out, "runs\t%s\n", counts(phases))
	for _, one := range w.sides {
		k := one.keeper
		k.mu.Lock()
		var most soak.Usage
		for _, life := range k.lives {
			for _, u := range life.Samples {
				most.Goroutines, most.Heap = max(most.Goroutines, u.Goroutines), max(most.Heap, u.Heap)
			}
		}
		fmt.Fprintf(out, "scuted of %s\t%d lives, %d killed, %d ended by themselves; at most %d goroutines, %d MiB; log: %d commits\n",
			k.side(), len(k.lives), k.killed, k.ended, most.Goroutines, most.Heap>>20, w.books[k.side()].Last)
		k.mu.Unlock()
	}
	fmt.Fprintf(out, "looks\t%s\n", counts(w.looks))
	if failed := w.report.violations(); len(failed) > 0 {
		fmt.Fprintf(out, "violations\t%s\n", strings.Join(failed, "\n\t"))
	} else {
		fmt.Fprintf(out, "violations\tnone\n")
	}
	_ = out.Flush() // standard output
}

// counts formats numbers by name, in order.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
