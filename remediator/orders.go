package remediator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// recordOrders returns the events for the holds and aborts (orders) that operators wrote on the
// requests or removed. An order ends only when it is removed from the request that it was written
// on, or from a later request that it was copied to. A later request to which it was not copied yet
// does not end it.
func recordOrders(s *State, f *Facts, _ time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		if m := f.machine(u.Subject); m != nil && m.Request != nil {
			events = append(events, u.recordOrders(m.Request)...)
		}
	}
	return events
}

// recordOrders returns the events for changes of the orders of a request that the log does not have
// yet. The machine may be healthy again.
func (u *UnhealthyMachine) recordOrders(r *Request) []Event {
	var events []Event
	released := u.Held && !r.Hold && !r.lacksOrderOf(u.HeldBy) || u.Aborted && !r.Abort && !r.lacksOrderOf(u.AbortedBy)
	if released {
		events = append(events, HoldReleased{Machine: u.Subject})
	}
	if r.Abort && (released || !u.Aborted || r.lacksOrderOf(u.AbortedBy)) {
		events = append(events, AbortRequested{Machine: u.Subject, Request: r.UID})
	}
	if r.Hold && (released || !u.Held || r.lacksOrderOf(u.HeldBy) || !u.HoldUntil.Equal(r.HoldUntil) || u.HoldReason != r.HoldReason) {
		events = append(events, HoldSet{Machine: u.Subject, Until: r.HoldUntil, Reason: r.HoldReason, Request: r.UID})
	}
	return events
}

// lacksOrderOf reports whether an order was written on an earlier request and was not copied to
// this request yet. said is the UID of the request on which the order was written, or "" in older
// logs.
func (r *Request) lacksOrderOf(said types.UID) bool {
	return said != "" && said != r.UID && !r.OrdersCopied
}

// lacksOrder reports whether a valid order of an earlier request was not copied to this request
// yet. An order is valid as long as the machine exists, so it is copied to each later request,
// where an operator can remove it.
func (u *UnhealthyMachine) lacksOrder(r *Request, now time.Time) bool {
	return u.Aborted && !r.Abort && r.lacksOrderOf(u.AbortedBy) || u.held(now) && !r.Hold && r.lacksOrderOf(u.HeldBy)
}

func (u *UnhealthyMachine) hasOrder() bool { return u.Aborted || u.Held }

func (u *UnhealthyMachine) held(now time.Time) bool {
	return u.Held && (u.HoldUntil.IsZero() || now.Before(u.HoldUntil))
}

// heldUntil returns when both the operator's hold and the policy's hold have ended. It returns zero
// for a hold without an end.
func (u *UnhealthyMachine) heldUntil(p Policy) time.Time {
	if u.Held && u.HoldUntil.IsZero() {
		return time.Time{}
	}
	return later(u.UnhealthyAt.Add(p.Hold), u.HoldUntil)
}
