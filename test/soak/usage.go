package soak

import (
	"fmt"
	"slices"
	"time"
)

// Usage is the resource usage of a scuted process at a time.
type Usage struct {
	At         time.Time
	Goroutines int
	Heap       int // bytes in use, including garbage
}

// Life is the usage of a process from its start to its end.
type Life struct {
	Side    string
	Started time.Time
	Samples []Usage
}

// A life is judged by the first stretch after the start-up, and by the last stretch of the same length.
const (
	warmUp  = 15 * time.Second
	stretch = 30 * time.Second
	// Usage may grow by this much between the stretches, because of clusters that were moved to the side and the log's
	// views. For goroutines, 70 were measured: two for each connection to a workload cluster, and those of the log's
	// consumers.
	moreGoroutines = 120
	moreHeap       = 48 << 20
)

// Flat checks the fifth invariant: a process uses no more at the end of its life than at the beginning. It compares the
// usual values of the first stretch, in which an API server may have been down, with the lowest of the last one,
// because garbage and work vary. judged is false if the life is too short.
func (l Life) Flat() (judged bool, err error) {
	if len(l.Samples) == 0 {
		return false, nil
	}
	begin, end := l.Started.Add(warmUp), l.Samples[len(l.Samples)-1].At
	if end.Sub(begin) < 2*stretch {
		return false, nil
	}
	first, last := l.between(begin, begin.Add(stretch)), l.between(end.Add(-stretch), end)
	if len(first) == 0 || len(last) == 0 {
		return false, nil
	}
	early, late := nth(first, len(first)/2), nth(last, 0)
	if late.Goroutines > early.Goroutines+moreGoroutines {
		return true, fmt.Errorf("goroutines: scuted of %s had %d and has %d after %s", l.Side, early.Goroutines, late.Goroutines, end.Sub(l.Started).Round(time.Second))
	}
	if late.Heap > early.Heap+early.Heap/2+moreHeap {
		return true, fmt.Errorf("memory: scuted of %s used %d MiB and uses %d MiB after %s", l.Side, early.Heap>>20, late.Heap>>20, end.Sub(l.Started).Round(time.Second))
	}
	return true, nil
}

// between returns the samples between two times.
func (l Life) between(from, to time.Time) []Usage {
	return slices.DeleteFunc(slices.Clone(l.Samples), func(u Usage) bool { return u.At.Before(from) || u.At.After(to) })
}

// nth returns for each value the one that n samples are below.
func nth(samples []Usage, n int) Usage {
	figure := func(of func(Usage) int) int {
		slices.SortFunc(samples, func(a, b Usage) int { return of(a) - of(b) })
		return of(samples[n])
	}
	return Usage{Goroutines: figure(func(u Usage) int { return u.Goroutines }), Heap: figure(func(u Usage) int { return u.Heap })}
}
