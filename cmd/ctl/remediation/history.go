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

// ownerOf returns the aggregate of the owner. The ID of a remediation consists of the owner's ID
// and the machine.
func ownerOf(remediationID string) (eventlog.Aggregate, bool) {
	i := strings.LastIndexByte(remediationID, '/')
	if i <= 0 {
		return eventlog.Aggregate{}, false
	}
	return eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: remediationID[:i]}, true
}

func readOwner(ctx context.Context, log *connect.Log, owner eventlog.Aggregate) (*Fold, error) {
	records, err := log.Read(ctx, owner, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s from the log at %s: %w", owner, log.Where, err)
	}
	f := NewFold()
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// LastDecision returns the last decision about a machine, its evidence and its time. All are zero
// if there is no decision.
func (f *Fold) LastDecision(machine string) (d remediator.Decision, seen remediator.Evidence, at time.Time) {
	for _, past := range f.State.History {
		if past.Victim.Name == machine && past.Decision.Verdict != "" {
			d, seen, at = past.Decision, past.Evidence, past.StartedAt
		}
	}
	for _, u := range f.State.Unhealthy {
		if u.Name == machine && u.Decision.Verdict != "" && !u.DecidedAt.Before(at) {
			d, seen, at = u.Decision, u.Evidence, u.DecidedAt
		}
	}
	return d, seen, at
}

// mark returns the event that marked a machine as unhealthy. Its State is empty if there is none.
func (f *Fold) mark(machine string) (m remediator.MachineMarked) {
	for _, u := range f.State.Unhealthy {
		if u.Name == machine && u.Mark.State != "" {
			m = u.Mark
		}
	}
	return m
}

// events returns a function that returns the events of a remediation's machine in a commit of the
// machine's owner.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]kit.Event, error) {
	selected, subjects, owner := kit.Filter{Machine: r.Name}, kit.NewSubjects(), NewFold()
	return func(record eventlog.Record) ([]kit.Event, error) {
		if err := owner.Apply(record); err != nil { // the unreadable event may be about the machine
			return nil, err
		}
		return selected.Select(subjects.Events(record)), nil
	}
}
