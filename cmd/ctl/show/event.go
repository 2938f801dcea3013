package show

import (
	"fmt"
	"strings"
	"time"

	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

// Event is one fact of the log, with where it stands there.
type Event struct {
	eventlog.Event
	Seq       uint64
	Aggregate eventlog.Aggregate
	Fact      fact.Fact
}

// Events are the facts of a commit. One that cannot be decoded is told as such: it is there, and it is counted.
func Events(words *fact.Words, r eventlog.Record) []Event {
	events, err := r.Events()
	if err != nil {
		return []Event{{
			Seq: r.Seq, Aggregate: r.Aggregate, Event: eventlog.Event{Time: r.Stored},
			Fact: fact.Fact{What: "not readable", Detail: fmt.Sprintf("on subject %s: %v", r.Subject(), err)},
		}}
	}
	out := make([]Event, len(events))
	for i, ev := range events {
		out[i] = Event{Event: ev, Seq: r.Seq, Aggregate: r.Aggregate, Fact: words.Of(r.Aggregate.Kind, ev)}
	}
	return out
}

// style of a fact by what it means for the one who reads.
func (e Event) style() term.Style {
	switch e.Fact.What {
	case "succeeded", "verified":
		return term.Green
	case "failed", "refused", "not readable":
		return term.Red
	case "setback", "rollback started", "rolled back", "abort requested", "abort refused":
		return term.Yellow
	default:
		return term.Plain
	}
}

// Columns of a log line.
const (
	agoColumns       = 9
	seqColumns       = 6
	aggregateColumns = 30
	factColumns      = 18
	actorColumns     = 26
)

// Line is an event as a line of the log: exact time, time ago, sequence, aggregate, fact, actor, detail. In a terminal
// of limited width the day of today and the daemon's incarnation give way to the detail.
func (v View) Line(e Event) string {
	at, actor, actorWidth := term.Exact(e.Time), e.Actor, actorColumns
	if v.Width > 0 {
		if e.Time.UTC().Format(time.DateOnly) == v.Now.UTC().Format(time.DateOnly) {
			at = e.Time.UTC().Format("15:04:05.000Z")
		}
		if strings.HasPrefix(actor, "daemon/") {
			actor = "daemon"
		}
		actorWidth = 10
	}
	line := fmt.Sprintf("%s  %s  %s  %s  %s  %s  %s", v.Paint.Text(term.Dim, at), fill(term.Ago(v.Now, e.Time), agoColumns),
		fill(fmt.Sprintf("#%d", e.Seq), seqColumns), v.Paint.Text(term.Cyan, fill(e.Aggregate.String(), aggregateColumns)),
		v.Paint.Text(e.style(), fill(e.Fact.What, factColumns)), v.Paint.Text(term.Dim, fill(actor, actorWidth)), e.Fact.Detail)
	return strings.TrimRight(term.Fit(line, v.Width), " ")
}

func fill(s string, columns int) string { return fmt.Sprintf("%-*s", columns, s) }

// timelineMax is how many of the last events a timeline shows.
const timelineMax = 60

// Timeline is a Move's events as a table, and how many earlier ones were left out.
func (v View) Timeline(events []Event) (lines []string, left int) {
	left = max(0, len(events)-timelineMax)
	t := term.Table{Header: []string{"TIME", "AFTER", "SEQ", "FACT", "DETAIL", "ACTOR"}, Indent: "  ", Wrap: 2}
	var start time.Time
	if len(events) > 0 {
		start = events[0].Time
	}
	for _, e := range events[left:] {
		actor := e.Actor
		if v.Width > 0 && strings.HasPrefix(actor, "daemon/") {
			actor = "daemon"
		}
		t.Add(term.Exact(e.Time), "+"+e.Time.Sub(start).Round(time.Millisecond).String(), fmt.Sprint(e.Seq),
			v.Paint.Text(e.style(), e.Fact.What), e.Fact.Detail, actor)
	}
	return t.Lines(v.Paint, v.Width), left
}
