package logcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

const eventArgument = `EVENT is SEQUENCE/INDEX, for example 17/0 for the first event of commit 17; the sequence of a commit, for all of its events; or the
ID of an event.`

var oneEvent = exactlyOne("one event: SEQUENCE/INDEX, the sequence of a commit, or the ID of an event")

// selection is one event, or all events of a commit. It also contains all events of their
// aggregate.
type selection struct {
	commit eventlog.Record
	index  int // -1 for all events of the commit
	events []kit.Event
}

func (s *selection) contains(e kit.Event) bool {
	return e.Seq == s.commit.Seq && (s.index < 0 || s.index == e.Index)
}

// readEvent reads the event that the argument names, and all events of its aggregate.
func (d *deps) readEvent(ctx context.Context, event string) (*selection, error) {
	log, err := d.OpenLog(ctx)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &selection{}
	if s.commit, s.index, err = d.find(ctx, log, event); err != nil {
		return nil, err
	}
	records, err := log.Read(ctx, s.commit.Aggregate, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the aggregate of commit %d: %w", s.commit.Seq, err)
	}
	subjects := kit.NewSubjects()
	for _, r := range records {
		s.events = append(s.events, subjects.Events(r)...)
	}
	if !slices.ContainsFunc(s.events, s.contains) {
		seq := s.commit.Seq
		return nil, fmt.Errorf("commit %d has no event %d: its events are %d/0 to %d/%d", seq, s.index, seq, seq, len(kit.Events(s.commit))-1)
	}
	return s, nil
}

// find returns the commit of an event, and the event's index in it.
func (d *deps) find(ctx context.Context, log *connect.Log, event string) (commit eventlog.Record, index int, err error) {
	if seq, index, ok := parsePosition(event); ok {
		commit, err = log.At(ctx, seq)
		if errors.Is(err, eventlog.ErrGap) {
			err = fmt.Errorf("the log at %s has no commit %d: %s shows where it ends", log.Where, seq, d.Hint("", "log", "status"))
		}
		return commit, index, err
	}
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		events, _ := r.Events() // an unreadable commit contains no event of that ID
		if index = slices.IndexFunc(events, func(e eventlog.Event) bool { return e.ID == event }); index < 0 {
			return nil
		}
		commit = r
		return errFound
	})
	if err == nil {
		err = fmt.Errorf("the log at %s has no event %s: %s lists all", log.Where, event, d.Hint("", "log", "tail", "--lines", "-1", "-o", "json"))
	} else if errors.Is(err, errFound) {
		err = nil
	}
	return commit, index, err
}

// parsePosition parses SEQUENCE or SEQUENCE/INDEX. Any other argument is the ID of an event.
func parsePosition(event string) (seq uint64, index int, ok bool) {
	sequence, at, indexed := strings.Cut(strings.TrimPrefix(event, "#"), "/")
	seq, err := strconv.ParseUint(sequence, 10, 63)
	if err != nil || !indexed {
		return seq, -1, err == nil
	}
	index, err = strconv.Atoi(at)
	return seq, index, err == nil && index >= 0
}

var errFound = errors.New("found")
