package app

import (
	"context"
	"time"

	"scute.dev/controllers/remediation"
	"scute.dev/mover/transfer"
	remediations "scute.dev/remediator/runner"
)

// viewWait bounds how long a question to the log waits for the view of it.
const viewWait = 30 * time.Second

// begun lists the remediations that are not over, as the log has them now. A move asks after it was requested: one that begins
// later finds the move in the log.
func (d *daemon) begun(head func(context.Context) (uint64, error), driven bool) func(context.Context) ([]transfer.Remediation, error) {
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
		for _, b := range d.view.Remediations.Begun() {
			list = append(list, toldToMoves(b, driven)...)
		}
		return list, nil
	}
}

// toldToMoves is what a move is told of one owner. driven says that this daemon looks after machines.
func toldToMoves(b remediations.Begun, driven bool) []transfer.Remediation {
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

// thaw gives the owners that a move kept waiting their turn when it is over.
func (d *daemon) thaw(feed *remediation.EventSource, move string) {
	select {
	case <-d.projector.CaughtUp():
	default:
		return // at the start each owner with something begun has its turn
	}
	spec, over := d.view.Moves.Over(move)
	if !over {
		return
	}
	for _, owner := range d.view.Remediations.Due() {
		if owner.Namespace == spec.Namespace {
			feed.Changed(owner)
		}
	}
}
