package soak

import (
	"fmt"
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
	// What the least use of a stretch may grow by: clusters that a side has been given, the log's views.
	moreGoroutines = 80
	moreHeap       = 48 << 20
)

// Flat is the fifth invariant: a process uses no more at the end of its life than at its beginning. It compares the least
// of a stretch, since garbage and work come and go. judged is false for a life too short to tell.
func (l Life) Flat() (judged bool, err error) {
	if len(l.Samples) == 0 {
		return false, nil
	}
	begin, end := l.Started.Add(warmUp), l.Samples[len(l.Samples)-1].At
	if end.Sub(begin) < 2*stretch {
		return false, nil
	}
	early, late := l.least(begin, begin.Add(stretch)), l.least(end.Add(-stretch), end)
	if early.At.IsZero() || late.At.IsZero() {
		return false, nil
	}
	if late.Goroutines > early.Goroutines+moreGoroutines {
		return true, fmt.Errorf("goroutines: scuted of %s had %d and has %d after %s", l.Side, early.Goroutines, late.Goroutines, end.Sub(l.Started).Round(time.Second))
	}
	if late.Heap > early.Heap+early.Heap/2+moreHeap {
		return true, fmt.Errorf("memory: scuted of %s used %d MiB and uses %d MiB after %s", l.Side, early.Heap>>20, late.Heap>>20, end.Sub(l.Started).Round(time.Second))
	}
	return true, nil
}

// least of each figure between two times; zero if nothing was sampled.
func (l Life) least(from, to time.Time) Usage {
	var u Usage
	for _, s := range l.Samples {
		if s.At.Before(from) || s.At.After(to) {
			continue
		}
		if u.At.IsZero() {
			u = s
		}
		u.Goroutines, u.Heap = min(u.Goroutines, s.Goroutines), min(u.Heap, s.Heap)
	}
	return u
}
