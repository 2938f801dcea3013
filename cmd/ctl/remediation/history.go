package remediation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/filter"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// LastDecision is the last decision about a machine, with its evidence.
type LastDecision struct {
	remediator.Decision
	Evidence remediator.Evidence
	At       time.Time
}

// Decision returns the last decision about a machine; ok is false without one.
func (f *Fold) Decision(machine string) (last LastDecision, ok bool) {
	for _, past := range f.State.History {
		if past.Victim.Name == machine {
			last = LastDecision{past.Decision, past.Evidence, past.StartedAt}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(f.State.Unhealthy)) {
		if u := f.State.Unhealthy[uid]; u.Name == machine && u.Decision.Verdict != "" {
			last = LastDecision{u.Decision, u.Evidence, u.DecidedAt}
		}
	}
	return last, last.Verdict != ""
}

// ownerOf returns the aggregate of the owner in a remediation's ID. The ID is the owner's ID followed by the name of the machine.
func ownerOf(remediationID string) (eventlog.Aggregate, bool) {
	i := strings.LastIndexByte(remediationID, '/')
	if i <= 0 {
		return eventlog.Aggregate{}, false
	}
	return eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: remediationID[:i]}, true
}

// readOwner reads the owner of a machine from the log.
func readOwner(ctx context.Context, log *connect.Log, owner eventlog.Aggregate) (*Fold, error) {
	records, err := log.Read(ctx, owner, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s from the log at %s: %w", owner, log.Where, err)
	}
	f := NewFold()
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, explain(r.Seq, err)
		}
	}
	return f, nil
}

// explain adds the commit and the remedy to the error of an event that cannot be read.
func explain(seq uint64, err error) error {
	return fmt.Errorf("commit %d: %w: use the scutectl that belongs to the daemon, or a newer one", seq, err)
}

// events returns a function that selects the events about the machine from a commit of its owner.
func events(r *v1alpha1.SurgeRemediation) func(eventlog.Record) ([]show.Event, error) {
	selected, subjects, catalog := filter.Filter{Machine: r.Name}, filter.NewSubjects(), remediator.NewCatalog()
	return func(record eventlog.Record) ([]show.Event, error) {
		if err := catalog.Fold(record, func(remediator.Event, time.Time) {}); err != nil { // an event that cannot be read may be about the machine
			return nil, explain(record.Seq, err)
		}
		return selected.Select(show.Events(record), subjects), nil
	}
}
