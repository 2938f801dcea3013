package workflow

import (
	"container/heap"
	"time"

	"scute.dev/api/v1alpha1"
)

// alarm is a moment at which something about a task is due. It is looked at again when it rings: what is no longer so is
// passed over.
type alarm struct {
	at   time.Time
	task int
	need int // an edge of the task; the rings are none
}

const (
	ringRetry  = -1
	ringUndo   = -2
	ringExpiry = -3
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
	switch need {
	case ringRetry:
		c = &s.retryClock
	case ringUndo:
		c = &s.undoClock
	case ringExpiry:
		c = &s.expiryClock
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
	case ringExpiry:
		return !t.asking || !t.expiresAt.Equal(a.at)
	default:
		e := &t.edges[a.need]
		return e.state != edgeOpen || !e.expires.Equal(a.at) || !s.tasks[e.parent].pausedAt.IsZero()
	}
}

// dropStale keeps the earliest alarm one that counts.
func (s *State) dropStale() {
	for _, c := range []*clock{&s.clock, &s.retryClock, &s.undoClock, &s.expiryClock} {
		for len(*c) > 0 && s.stale((*c)[0]) {
			heap.Pop(c)
		}
	}
}

// frozen is the moment at which the clocks stopped, if they stand still, else the time. What is counted from it while they
// stand is put right by the shift with which they continue.
func (s *State) frozen(at time.Time) time.Time {
	if s.ended != nil && !s.endedAt.After(at) {
		at = s.endedAt
	}
	if s.paused && !s.pausedAt.After(at) {
		at = s.pausedAt
	}
	return at
}

// shift moves every deadline: the clocks stood still for d.
func (s *State) shift(d time.Duration) {
	if d <= 0 {
		return
	}
	if !s.deadline.IsZero() {
		s.deadline = s.deadline.Add(d)
	}
	s.clock, s.retryClock, s.undoClock, s.expiryClock = s.clock[:0], s.retryClock[:0], s.undoClock[:0], s.expiryClock[:0]
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.totalAt.IsZero() {
			t.totalAt = t.totalAt.Add(d)
		}
		if !t.pausedAt.IsZero() {
			t.pausedAt = t.pausedAt.Add(d)
		}
		if t.asking && !t.expiresAt.IsZero() {
			t.expiresAt = t.expiresAt.Add(d)
			s.alarm(t.expiresAt, i, ringExpiry)
		}
		if t.phase == taskRetrying || t.undo == undoWaiting {
			t.retryFrom, t.retryAt = t.retryFrom.Add(d), t.retryAt.Add(d)
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

// goesOn says that the clocks run: the run is neither stopped nor paused, nor does all of it wait for an operator.
func (s *State) goesOn() bool {
	return s.stopping == nil && !s.paused && !s.standsStill()
}

// standsStill says that all of the run waits for an operator, and not for an approval, which is a part of its plan.
func (s *State) standsStill() bool { return s.asking == 0 && CurrentPhase(s) == v1alpha1.RunPaused }

// ask has a task wait for an approval while the clocks continue, or says that it does no longer.
func (s *State) ask(i int, asking bool, until time.Time) {
	t := &s.tasks[i]
	switch {
	case asking && !t.asking:
		s.asking++
	case !asking && t.asking:
		s.asking--
	}
	t.asking, t.expiresAt = asking, until
	if asking && !until.IsZero() {
		s.alarm(until, i, ringExpiry)
	}
}

// edgesRest says that no timeout of an edge is running but of those that wait for a task that asks for an approval.
func (s *State) edgesRest() bool {
	for _, a := range s.clock {
		if !s.stale(a) && !s.tasks[s.tasks[a.task].edges[a.need].parent].asking {
			return false
		}
	}
	return true
}

// waited says that the wait for another attempt is over. A clock that is behind the failure was set back, or is another
// machine's: it cannot tell, and the delay must not become longer by as much.
func (s *State) waited(a alarm, now time.Time) bool {
	return !a.at.After(now) || now.Before(s.tasks[a.task].retryFrom)
}

// deadlineAt is when the run runs out of time; zero if never. When all tasks have ended, nothing is left that it could bound: what is held
// is given back however long that takes, and what succeeded is not rolled back because it takes long.
func (s *State) deadlineAt() time.Time {
	if s.stageLeft == [3]int{} {
		return time.Time{}
	}
	return s.deadline
}

// NextAt is when Decide will have something to say without anything else happening; zero if never. What is due already and
// waits for a free place among the effects in flight has a time that is past.
func NextAt(s *State) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.ended != nil || s.Stranded != "" {
		return at
	}
	if len(s.undoClock) > 0 && (s.stopping != nil || !s.paused) { // a paused run gives nothing back
		sooner(s.undoClock[0].at)
	}
	if s.goesOn() {
		sooner(s.deadlineAt())
		if len(s.clock) > 0 {
			sooner(s.clock[0].at)
		}
		if len(s.retryClock) > 0 {
			sooner(s.retryClock[0].at)
		}
		if len(s.expiryClock) > 0 {
			sooner(s.expiryClock[0].at)
		}
	}
	return at
}
