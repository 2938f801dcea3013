package soak

import (
	"fmt"
	"slices"
	"time"
)

// Usage is what a process of scuted uses at a moment.
type Usage struct {
	At         time.Time
	Goroutines int
	Heap       int // bytes in use, garbage included
}

// Life is a process, from its start to its end.
type Life struct {
	Side    string
	Started time.Time
	Samples []Usage
}

// How a life is judged: from the first stretch, when it has caught up, to the last one of the same length.
const (
	warmUp  = 15 * time.Second
	stretch = 30 * time.Second
	// What the use of a stretch may grow by: clusters that a side has been given, the log's views. Of goroutines 70 were measured: two for each
	// connection to a cluster that is looked into, and those of the consumers of the log.
	moreGoroutines = 120
	moreHeap       = 48 << 20
)

// Flat is the fifth invariant: a process uses no more at the end of its life than at its beginning. It compares what is usual in the first
// stretch, in which an API server may have been away for a while, with the least of the last one, since garbage and work come and go.
// judged is false for a life too short to tell.
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

// between are the samples between two times.
func (l Life) between(from, to time.Time) []Usage {
	return slices.DeleteFunc(slices.Clone(l.Samples), func(u Usage) bool { return u.At.Before(from) || u.At.After(to) })
}

// nth has each figure of which n samples have less.
func nth(samples []Usage, n int) Usage {
	figure := func(of func(Usage) int) int {
		slices.SortFunc(samples, func(a, b Usage) int { return of(a) - of(b) })
		return of(samples[n])
	}
	return Usage{Goroutines: figure(func(u Usage) int { return u.Goroutines }), Heap: figure(func(u Usage) int { return u.Heap })}
}
