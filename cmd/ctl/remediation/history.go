package remediation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// history contains the facts about one machine that its status omits.
type history struct {
	Mark     *remediator.MachineMarked // nil without a mark
	Decision remediator.Decision       // zero without a decision
	Evidence remediator.Evidence
}

// ownerOf returns the aggregate of the owner in a remediation's ID. The ID is the owner's ID followed by the name of the machine.
func ownerOf(remediationID string) (eventlog.Aggregate, bool) {
	i := strings.LastIndexByte(remediationID, '/')
	if i <= 0 {
		return eventlog.Aggregate{}, false
	}
	return eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: remediationID[:i]}, true
}

// readHistory reads the facts about a machine from the log.
func readHistory(ctx context.Context, log *connect.Log, owner eventlog.Aggregate, machine string) (*history, error) {
	records, err := log.Read(ctx, owner, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s from the log at %s: %w", owner, log.Where, err)
	}
	h, state, catalog := &history{}, &remediator.State{}, remediator.NewCatalog()
	for _, r := range records {
		err := catalog.Fold(r, func(e remediator.Event, at time.Time) {
			about := remediator.SubjectOf(state, e).Name
			if state.Apply(e, at); about == machine {
				h.apply(e)
			}
		})
		if err != nil {
			return nil, explain(r.Seq, err)
		}
	}
	return h, nil
}

// explain adds the commit and the remedy to the error of an event that cannot be read.
func explain(seq uint64, err error) error {
	return fmt.Errorf("commit %d: %w: use the scutectl that belongs to the daemon, or a newer one", seq, err)
}

func (h *history) apply(e remediator.Event) {
	switch e := e.(type) {
	case remediator.MachineMarked:
		h.Mark = &e
	case remediator.MachineMarkCleared:
		h.Mark = nil
	case remediator.Decided:
		h.Decision, h.Evidence = e.Decision, e.Evidence
	}
}

// events returns a function that selects the events about the machine from a commit of its owner.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]kit.Event, error) {
	selected, subjects, catalog := kit.Filter{Machine: r.Name}, kit.NewSubjects(), remediator.NewCatalog()
	return func(record eventlog.Record) ([]kit.Event, error) {
		if err := catalog.Fold(record, func(remediator.Event, time.Time) {}); err != nil { // an event that cannot be read may be about the machine
			return nil, explain(record.Seq, err)
		}
		return selected.Select(kit.Events(record), subjects), nil
	}
}
