package kit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
)

// Moment is the time of a flag, absolute or relative to now. The zero value is unset.
type Moment struct {
	time.Time
	before time.Duration
}

// Set parses "10m", "2026-07-30T12:00:00Z" or "2026-07-30".
func (m *Moment) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return fmt.Errorf("it must be a duration greater than zero")
		}
		*m = Moment{before: d}
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			*m = Moment{Time: t}
			return nil
		}
	}
	return fmt.Errorf("it must be a duration before now (10m, 36h), a time (2026-07-30T12:00:00Z) or a day (2026-07-30)")
}

// Type names the value in the usage of a command.
func (m *Moment) Type() string { return "time" }

// String formats the value.
func (m *Moment) String() string {
	switch {
	case m.before > 0 && m.IsZero():
		return m.before.String()
	case m.IsZero():
		return ""
	default:
		return cli.Second(m.Time)
	}
}

// IsSet reports whether the option was given.
func (m *Moment) IsSet() bool { return m.before > 0 || !m.IsZero() }

// Resolve converts a time relative to now to an absolute time.
func (m *Moment) Resolve(now time.Time) {
	if m.before > 0 {
		m.Time = now.Add(-m.before)
	}
}

// point is a position in the log: a sequence, or the last commit at a time.
type point struct {
	Moment
	Seq uint64
}

// Set parses a sequence or a Moment.
func (p *point) Set(s string) error {
	if seq, err := strconv.ParseUint(s, 10, 64); err == nil {
		if seq == 0 {
			return fmt.Errorf("the first sequence is 1")
		}
		*p = point{Seq: seq}
		return nil
	}
	var m Moment
	if err := m.Set(s); err != nil {
		return fmt.Errorf("it must be the sequence of a commit (812), or %s", strings.TrimPrefix(err.Error(), "it must be "))
	}
	*p = point{Moment: m}
	return nil
}

// Type names the value in the usage of a command.
func (p *point) Type() string { return "sequence|time" }

// String formats the value.
func (p *point) String() string {
	if p.Seq > 0 {
		return strconv.FormatUint(p.Seq, 10)
	}
	return p.Moment.String()
}

// IsSet reports whether the option was given.
func (p *point) IsSet() bool { return p.Seq > 0 || p.Moment.IsSet() }

func (k *Kit) addAt(cmd *cobra.Command) {
	cmd.Flags().Var(&k.At, "at", "State in the log after this commit or at this time: 812, 10m (before now), 2026-07-30T12:00:00Z or 2026-07-30")
}

// endAtPoint ends the log at --at, and prints which commit that is.
func (k *Kit) endAtPoint(ctx context.Context, log *connect.Log) error {
	if !k.At.IsSet() {
		return nil
	}
	r, err := k.last(ctx, log)
	if err != nil {
		return err
	}
	log.SetEnd(r.Seq)
	k.now = r.Stored
	if k.At.Seq == 0 {
		k.now = k.At.Time
	}
	k.Env.Notef("As it was after commit %d, stored %s (%s).\n", r.Seq, cli.Ago(k.Env.Now(), r.Stored), cli.Second(r.Stored))
	return nil
}

func (k *Kit) last(ctx context.Context, log *connect.Log) (eventlog.Record, error) {
	if k.At.Seq == 0 {
		now := k.Env.Now()
		if k.At.Resolve(now); k.At.Time.After(now) {
			return eventlog.Record{}, cli.Usagef("--at is %s, which is in the future", cli.Second(k.At.Time))
		}
		return log.Last(ctx, k.At.Time)
	}
	head, err := log.Head(ctx)
	if err != nil {
		return eventlog.Record{}, err
	}
	if k.At.Seq > head {
		return eventlog.Record{}, cli.Usagef("--at is %d: the log at %s ends at commit %d", k.At.Seq, log.Where, head)
	}
	return log.At(ctx, k.At.Seq)
}
