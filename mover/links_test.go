package mover_test

import (
	"fmt"

	"scute.dev/aggregate"
	"scute.dev/mover"
)

// chain takes the events of a move in, and says what is wrong with their causes.
type chain struct {
	causes aggregate.Causes
	n      int
}

// take takes one event in, decided on the state s. It follows from an earlier one unless it is a root.
func (c *chain) take(s *mover.State, e mover.Event) (wrong string) {
	links := mover.Links(s, e)
	switch of := c.causes.Of(links); {
	case of == "" && !root(s, e):
		wrong = fmt.Sprintf("%T%+v follows from nothing", e, e)
	case of != "" && root(s, e):
		wrong = fmt.Sprintf("%T%+v follows from event %s, and a person asked for it", e, e, of)
	}
	c.causes.Add(links, fmt.Sprint(c.n))
	c.n++
	return wrong
}

// root says that an event follows from no other: a person asked for it, a process took over, or another log was seen.
func root(s *mover.State, e mover.Event) bool {
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
