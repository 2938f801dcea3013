package workflow

import (
	"container/heap"
	"time"

	"scute.dev/api/v1alpha1"
)

// alarm is a time at which something about a task is due. An alarm may be outdated when its time
// comes.
type alarm struct {
	at   time.Time
	task int
	kind int // the index of an edge, or one of the negative constants below
}

const (
	alarmEdge   = 0
	alarmRetry  = -1
	alarmUndo   = -2
	alarmExpiry = -3
)

type clock []alarm

func (c clock) Len() int { return len(c) }
func (c clock) Less(i, j int) bool {
	if !c[i].at.Equal(c[j].at) {
		return c[i].at.Before(c[j].at)
	}
	return c[i].task < c[j].task || c[i].task == c[j].task && c[i].kind < c[j].kind
}
func (c clock) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *clock) Push(x any) { *c = append(*c, x.(alarm)) } //nolint:errcheck,forcetypeassert // heap passes the elements that were pushed

// Pop implements heap.Interface.
func (c *clock) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

func (s *State) addAlarm(at time.Time, task, kind int) {
	heap.Push(s.clock(kind), alarm{at, task, kind})
}

func (s *State) clock(kind int) *clock { return &s.clocks[max(-kind, 0)] }

func (s *State) nextAlarm(kind int) (next alarm, ok bool) {
	if c := *s.clock(kind); len(c) > 0 {
		return c[0], true
	}
	return next, false
}

func (s *State) isStale(a alarm) bool {
	t := &s.tasks[a.task]
	switch a.kind {
	case alarmRetry:
		return t.phase != taskRetrying || !t.retryAt.Equal(a.at)
	case alarmUndo:
		return t.undo != undoWaiting || !t.retryAt.Equal(a.at)
	case alarmExpiry:
		return !t.awaitingApproval || !t.expiresAt.Equal(a.at)
	default:
		e := &t.edges[a.kind]
		return e.state != edgeOpen || !e.expires.Equal(a.at) || !s.tasks[e.parent].pausedAt.IsZero()
	}
}

func (s *State) dropStale() {
	for i := range s.clocks {
		for c := &s.clocks[i]; len(*c) > 0 && s.isStale((*c)[0]); {
			heap.Pop(c)
		}
	}
}

// clockTime returns the time at which the clocks stopped, or at if they are running. Deadlines
// computed from this time are shifted when the clocks start again.
func (s *State) clockTime(at time.Time) time.Time {
	if s.ended != nil && !s.endedAt.After(at) {
		at = s.endedAt
	}
	if s.paused && !s.pausedAt.After(at) {
		at = s.pausedAt
	}
	return at
}

// shiftDeadlines moves all deadlines by d, the time for which the clocks were stopped.
func (s *State) shiftDeadlines(d time.Duration) {
	if d <= 0 {
		return
	}
	if !s.deadline.IsZero() {
		s.deadline = s.deadline.Add(d)
	}
	for i := range s.clocks {
		s.clocks[i] = s.clocks[i][:0]
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.totalAt.IsZero() {
			t.totalAt = t.totalAt.Add(d)
		}
		if !t.pausedAt.IsZero() {
			t.pausedAt = t.pausedAt.Add(d)
		}
		if t.awaitingApproval && !t.expiresAt.IsZero() {
			t.expiresAt = t.expiresAt.Add(d)
			s.addAlarm(t.expiresAt, i, alarmExpiry)
		}
		if t.phase == taskRetrying || t.undo == undoWaiting {
			t.retryFrom, t.retryAt = t.retryFrom.Add(d), t.retryAt.Add(d)
			if t.phase == taskRetrying {
				s.addAlarm(t.retryAt, i, alarmRetry)
			} else {
				s.addAlarm(t.retryAt, i, alarmUndo)
			}
		}
		for n := range t.edges {
			if e := &t.edges[n]; e.state == edgeOpen && !e.expires.IsZero() {
				e.expires = e.expires.Add(d)
				if s.tasks[e.parent].pausedAt.IsZero() {
					s.addAlarm(e.expires, i, n)
				}
			}
		}
	}
}

// clocksRun reports whether timeouts run. They do not while the run is stopping or paused, or while
// only an operator can make it continue.
func (s *State) clocksRun() bool {
	return s.stopping == nil && !s.paused && !s.awaitsOperator()
}

// awaitsOperator reports whether only an operator can make the run continue. It returns false while
// an approval is awaited: an approval is part of the plan, so the clocks keep running.
func (s *State) awaitsOperator() bool {
	return s.approvals == 0 && CurrentPhase(s) == v1alpha1.RunPaused
}

func (s *State) setAwaitingApproval(i int, asking bool, until time.Time) {
	t := &s.tasks[i]
	switch {
	case asking && !t.awaitingApproval:
		s.approvals++
	case !asking && t.awaitingApproval:
		s.approvals--
	}
	t.awaitingApproval, t.expiresAt = asking, until
	if asking && !until.IsZero() {
		s.addAlarm(until, i, alarmExpiry)
	}
}

// edgesIdle reports whether no edge timeout is running. It ignores edges from tasks that wait for
// an approval.
func (s *State) edgesIdle() bool {
	for _, a := range *s.clock(alarmEdge) {
		if !s.isStale(a) && !s.tasks[s.tasks[a.task].edges[a.kind].parent].awaitingApproval {
			return false
		}
	}
	return true
}

// delayPassed reports whether the delay before a retry is over. It also returns true if now is
// before the time of the failure: then the clock was set back, or another machine recorded the
// failure, and the delay must not become longer.
func (s *State) delayPassed(a alarm, now time.Time) bool {
	return !a.at.After(now) || now.Before(s.tasks[a.task].retryFrom)
}

// deadlineAt returns the deadline of the run, or zero once all tasks have ended: the deadline must
// not limit the release of holds, nor roll back tasks that succeeded.
func (s *State) deadlineAt() time.Time {
	if s.stageRemaining == [3]int{} {
		return time.Time{}
	}
	return s.deadline
}

// NextAt returns when Decide will next return events without any other input; zero means never. If
// an effect is due but waits for a free slot, the time is in the past.
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
	if s.stopping != nil || !s.paused { // a paused run releases no holds
		next, _ := s.nextAlarm(alarmUndo)
		sooner(next.at)
	}
	if s.clocksRun() {
		sooner(s.deadlineAt())
		for _, kind := range []int{alarmEdge, alarmRetry, alarmExpiry} {
			next, _ := s.nextAlarm(kind)
			sooner(next.at)
		}
	}
	return at
}
