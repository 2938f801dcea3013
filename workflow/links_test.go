package workflow

import (
	"fmt"

	"scute.dev/aggregate"
)

// Chain follows the causes of a run's events.
type Chain struct {
	causes aggregate.Causes
	n      int
}

// Check adds an event that was decided on the state s. It returns an error text unless the event has a cause or is a
// root.
func (c *Chain) Check(s *State, e Event) (wrong string) {
	links := Links(s, e)
	switch of := c.causes.Find(links); {
	case of == "" && !isRoot(s, e):
		wrong = fmt.Sprintf("%T%+v follows from nothing", e, e)
	case of != "" && isRoot(s, e):
		wrong = fmt.Sprintf("%T%+v follows from event %s, and a person asked for it", e, e, of)
	}
	c.causes.Add(links, fmt.Sprint(c.n))
	c.n++
	return wrong
}

// isRoot reports whether an event has no cause: a user requested it, or another process took over.
func isRoot(s *State, e Event) bool {
	switch e := e.(type) {
	case Defined, Started, Paused, Resumed, Migrated, TaskReleased, Decided:
		return true
	case Claimed:
		return s.Holder != ""
	case Aborted:
		return e.Cause == CauseOperator && e.Task == ""
	case RollbackStarted:
		return e.Cause == CauseOperator && e.Task == ""
	case TaskPaused:
		return e.Reason == ReasonHeld
	default:
		return false
	}
}
