package app

import (
	"context"
	"time"

	"scute.dev/controllers/remediation"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	remediations "scute.dev/remediator/runner"
)

// viewWait limits how long a query waits until the view has caught up with the log.
const viewWait = 30 * time.Second

// remediationLister returns a function that lists the unfinished remediations. A move calls it
// after its request is in the log, so that a remediation that starts later finds the move there.
func (d *daemon) remediationLister(head func(context.Context) (uint64, error), driven bool) func(context.Context) ([]transfer.Remediation, error) {
	return func(ctx context.Context) ([]transfer.Remediation, error) {
		ctx, cancel := context.WithTimeout(ctx, viewWait)
		defer cancel()
		seq, err := head(ctx)
		if err != nil {
			return nil, err
		}
		if err := d.projector.WaitFor(ctx, seq); err != nil {
			return nil, err
		}
		var list []transfer.Remediation
		for _, b := range d.view.Remediations.Ongoing() {
			list = append(list, remediationsForMove(b, driven)...)
		}
		return list, nil
	}
}

// remediationsForMove returns the unfinished remediations of one owner. driven is true if this
// daemon remediates machines.
func remediationsForMove(b remediations.Ongoing, driven bool) []transfer.Remediation {
	if b.Err != nil {
		return []transfer.Remediation{{
			Owner: b.Owner.UID, Message: b.Err.Error(), Next: "run the version of scute that wrote this event, or a newer one",
		}}
	}
	var list []transfer.Remediation
	for _, m := range b.Machines {
		next := m.Next
		if !driven {
			next = "scuted runs with --remediation=false, so nothing ends it; start it without that flag"
		}
		list = append(list, transfer.Remediation{
			ID: b.Owner.Remediation(m.Machine.Name), Owner: b.Owner.UID, Machine: m.Machine.Name, Message: m.Message, Next: next,
		})
	}
	return list
}

// enqueueAfterMove enqueues the owners that waited for the end of a move, if the move has ended.
func (d *daemon) enqueueAfterMove(feed *remediation.EventSource, move string) {
	select {
	case <-d.projector.CaughtUp():
	default:
		return // at the start, each owner with an unfinished remediation is enqueued anyway
	}
	namespace, ended := "", false
	d.view.Moves.ReadState(move, func(s *mover.State) {
		if s != nil {
			namespace, ended = s.Spec.Namespace, s.Finished()
		}
	})
	if !ended {
		return
	}
	for _, owner := range d.view.Remediations.Pending() {
		if owner.Namespace == namespace {
			feed.Owners.Add(owner)
		}
	}
}
