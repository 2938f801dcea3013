package logcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
)

// eventArgument describes the argument of the commands about an event.
const eventArgument = `EVENT is SEQUENCE/INDEX, for example 17/0 for the first event of commit 17; the sequence of a commit, for all of its events; or the
ID of an event.`

func oneEvent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("%s needs one event: SEQUENCE/INDEX, the sequence of a commit, or the ID of an event", cmd.CommandPath())
	}
	return nil
}

// withEvent returns a command that is run with the commit of the event that its argument names, and the event's index in the commit.
func (d *deps) withEvent(run func(ctx context.Context, log *connect.Log, commit eventlog.Record, index int) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return d.read(cmd.Context(), func(ctx context.Context, log *connect.Log) error {
			commit, index, err := d.find(ctx, log, args[0])
			if err != nil {
				return err
			}
			return run(ctx, log, commit, index)
		})
	}
}

func noSuchEvent(seq uint64, index, events int) error {
	return fmt.Errorf("commit %d has no event %d: its events are %d/0 to %d/%d", seq, index, seq, seq, events-1)
}

// all is the index of all events of a commit.
const all = -1

// find reads the commit of an event, and returns the event's index in it.
func (d *deps) find(ctx context.Context, log *connect.Log, event string) (commit eventlog.Record, index int, err error) {
	seq, index, placed := parsePosition(event)
	if placed {
		commit, err = log.At(ctx, seq)
		if errors.Is(err, eventlog.ErrGap) {
			err = fmt.Errorf("the log at %s has no commit %d: %s shows where it ends", log.Where, seq, d.Hint("", "log", "status"))
		}
		return commit, index, err
	}
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		events, err := r.Events()
		if err != nil {
			return nil //nolint:nilerr // an unreadable commit contains no event of that ID
		}
		if index = slices.IndexFunc(events, func(e eventlog.Event) bool { return e.ID == event }); index < 0 {
			return nil
		}
		commit = r
		return errFound
	})
	switch {
	case errors.Is(err, errFound):
		return commit, index, nil
	case err != nil:
		return eventlog.Record{}, 0, err
	}
	return eventlog.Record{}, 0, fmt.Errorf("the log at %s has no event %s: %s lists all", log.Where, event, d.Hint("", "log", "tail", "--lines", "-1", "-o", "json"))
}

// parsePosition parses SEQUENCE or SEQUENCE/INDEX. Any other argument is the ID of an event.
func parsePosition(event string) (seq uint64, index int, ok bool) {
	sequence, at, indexed := strings.Cut(strings.TrimPrefix(event, "#"), "/")
	seq, err := strconv.ParseUint(sequence, 10, 63)
	if err != nil || !indexed {
		return seq, all, err == nil
	}
	index, err = strconv.Atoi(at)
	return seq, index, err == nil && index >= 0
}

// errFound ends a replay.
var errFound = errors.New("found")
