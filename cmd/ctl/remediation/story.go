package remediation

import (
	"context"
	"fmt"
	"strings"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// history contains the facts about one machine that its status omits.
type history struct {
	Mark     *remediator.MachineMarked // nil without a mark
	Decision remediator.Decision       // zero without a decision
	Evidence remediator.Evidence
	// Steps contains the facts about the machine.
	Steps []step

	machine string
	catalog *eventlog.Catalog[remediator.Event]
	state   *remediator.State
}

// step is an event and its position in the log.
type step struct {
	eventlog.Event
	Seq       uint64
	Aggregate eventlog.Aggregate
}

// ownerOf returns the aggregate of the owner in a remediation's ID. The ID is the owner's ID followed by the name of the machine.
func ownerOf(remediationID string) (eventlog.Aggregate, bool) {
	i := strings.LastIndexByte(remediationID, '/')
	if i <= 0 {
		return eventlog.Aggregate{}, false
	}
	return eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: remediationID[:i]}, true
}

func newHistory(machine string) *history {
	return &history{machine: machine, catalog: remediator.NewCatalog(), state: &remediator.State{}}
}

// readHistory reads the story of a machine from the log.
func readHistory(ctx context.Context, log *connect.Log, owner eventlog.Aggregate, machine string) (*history, error) {
	records, err := log.Read(ctx, owner, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s from the log at %s: %w", owner, log.Where, err)
	}
	s := newHistory(machine)
	for _, r := range records {
		if err := s.Apply(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Apply adds the facts about the machine in a commit.
func (s *history) Apply(r eventlog.Record) error {
	events, err := r.Events()
	if err != nil {
		return fmt.Errorf("commit %d: %w", r.Seq, err)
	}
	for _, ev := range events {
		e, err := s.catalog.Decode(ev)
		if err != nil {
			return fmt.Errorf("commit %d: %w: use the scutectl that belongs to the daemon, or a newer one", r.Seq, err)
		}
		about := remediator.SubjectOf(s.state, e).Name
		s.state.Apply(e, ev.Time)
		if about != s.machine {
			continue
		}
		s.applyEvent(e)
		s.Steps = append(s.Steps, step{Event: ev, Seq: r.Seq, Aggregate: r.Aggregate})
	}
	return nil
}

func (s *history) applyEvent(e remediator.Event) {
	switch e := e.(type) {
	case remediator.MachineMarked:
		s.Mark = &e
	case remediator.MachineMarkCleared:
		s.Mark = nil
	case remediator.Decided:
		s.Decision, s.Evidence = e.Decision, e.Evidence
	}
}
