package mover_test

import (
	"fmt"

	"scute.dev/aggregate"
	"scute.dev/mover"
)

// chain follows the causes of a move's events.
type chain struct {
	causes aggregate.Causes
	n      int
}

// check adds an event that was decided on the state s. It returns an error text unless the event has a cause or is a
// root.
func (c *chain) check(s *mover.State, e mover.Event) (wrong string) {
	links := mover.Links(s, e)
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

// isRoot reports whether an event has no cause: a user requested it, another process took over, or
// another log was found.
func isRoot(s *mover.State, e mover.Event) bool {
	switch e.(type) {
	case mover.Requested, mover.LogLost, mover.TargetAbandoned, mover.AbortRequested:
		return true
	case mover.Claimed:
		return s.Phase != mover.PhasePending
	case mover.Resolved:
		return !s.Abort
	default:
		return false
	}
}
