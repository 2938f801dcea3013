package workflow

import (
	"container/heap"
	"time"
)

// alarm is a moment at which something about a task is due. It is looked at again when it rings: what is no longer so is
// passed over.
type alarm struct {
	at   time.Time
	task int
	need int // an edge of the task; ringRetry and ringUndo are none
}

const (
	ringRetry = -1
	ringUndo  = -2
)

// clock is a heap of alarms, the earliest first.
type clock []alarm

func (c clock) Len() int { return len(c) }
func (c clock) Less(i, j int) bool {
	if !c[i].at.Equal(c[j].at) {
		return c[i].at.Before(c[j].at)
	}
	return c[i].task < c[j].task || c[i].task == c[j].task && c[i].need < c[j].need
}
func (c clock) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *clock) Push(x any) { *c = append(*c, x.(alarm)) } //nolint:errcheck,forcetypeassert // heap hands back what it was given

// Pop implements heap.Interface.
func (c *clock) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

func (s *State) alarm(at time.Time, task, need int) {
	c := &s.clock
	if need == ringUndo {
		c = &s.undoClock
	}
	heap.Push(c, alarm{at, task, need})
}

// stale says that an alarm is no longer about anything.
func (s *State) stale(a alarm) bool {
	t := &s.tasks[a.task]
	switch a.need {
	case ringRetry:
		return t.phase != taskRetrying || !t.retryAt.Equal(a.at)
	case ringUndo:
		return t.undo != undoWaiting || !t.retryAt.Equal(a.at)
	default:
		e := &t.edges[a.need]
		return e.state != edgeOpen || !e.expires.Equal(a.at)
	}
}

// dropStale keeps the earliest alarm one that counts.
func (s *State) dropStale() {
	for _, c := range []*clock{&s.clock, &s.undoClock} {
		for len(*c) > 0 && s.stale((*c)[0]) {
			heap.Pop(c)
		}
	}
}

// shift moves every deadline: the clocks stood still for d.
func (s *State) shift(d time.Duration) {
	if d <= 0 {
		return
	}
	if !s.deadline.IsZero() {
		s.deadline = s.deadline.Add(d)
	}
	s.clock, s.undoClock = s.clock[:0], s.undoClock[:0]
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.totalAt.IsZero() {
			t.totalAt = t.totalAt.Add(d)
		}
		if !t.pausedAt.IsZero() {
			t.pausedAt = t.pausedAt.Add(d)
		}
		if t.phase == taskRetrying || t.undo == undoWaiting {
			t.retryAt = t.retryAt.Add(d)
			if t.phase == taskRetrying {
				s.alarm(t.retryAt, i, ringRetry)
			} else {
				s.alarm(t.retryAt, i, ringUndo)
			}
		}
		for n := range t.edges {
			if e := &t.edges[n]; e.state == edgeOpen && !e.expires.IsZero() {
				e.expires = e.expires.Add(d)
				if s.tasks[e.parent].pausedAt.IsZero() {
					s.alarm(e.expires, i, n)
				}
			}
		}
	}
}

// NextAt is when Decide will have something to say without anything else happening; zero if never.
func NextAt(s *State) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.ended != nil || s.Stranded != "" || s.HandedOver != "" {
		return at
	}
	if len(s.undoClock) > 0 {
		sooner(s.undoClock[0].at)
	}
	if s.stopping == nil && !s.paused {
		sooner(s.deadline)
		if len(s.clock) > 0 {
			sooner(s.clock[0].at)
		}
	}
	return at
}
