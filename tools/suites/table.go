package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// table has a line for each suite: its result, how long it took, and the CPU time that it and its processes used.
func table(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %-7s %8s %8s\n", "suite", "result", "seconds", "cpu s")
	for _, r := range results {
		fmt.Fprintf(&b, "%-20s %-7s %8.0f %8.0f\n", r.suite, outcome(r.failed), r.took.Seconds(), r.cpu.Seconds())
	}
	return b.String()
}

// repeats has a line for each suite that ran several times.
func repeats(results []result) string {
	var names []string
	runs := map[string][]result{}
	for _, r := range results {
		if runs[r.suite] == nil {
			names = append(names, r.suite)
		}
		runs[r.suite] = append(runs[r.suite], r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %5s %9s %8s %8s %8s %8s %6s\n", "suite", "runs", "failures", "min s", "median s", "max s", "cpu s", "load")
	for _, name := range names {
		var times []time.Duration
		var cpu time.Duration
		failures, load := 0, 0.0
		for _, r := range runs[name] {
			times, cpu, load = append(times, r.took), cpu+r.cpu, load+r.load
			if r.failed {
				failures++
			}
		}
		slices.Sort(times)
		n := len(times)
		median := (times[(n-1)/2] + times[n/2]) / 2
		fmt.Fprintf(&b, "%-20s %5d %9d %8.0f %8.0f %8.0f %8.0f %6.1f\n", name, n, failures,
			times[0].Seconds(), median.Seconds(), times[n-1].Seconds(), cpu.Seconds()/float64(n), load/float64(n))
	}
	return b.String()
}
