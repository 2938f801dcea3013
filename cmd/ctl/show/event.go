package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

// Event is one event of the log, with its place there.
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
	case "succeeded", "verified", "replacement ready", "mark cleared":
		return term.Green
	case "failed", "refused", "not readable":
		return term.Red
	case "setback", "rollback started", "rolled back", "abort requested", "abort refused", "marked", "frozen", "held", "cancel started", "cancelled",
		"extra machine", "surge consumed":
		return term.Yellow
	default:
		return term.Plain
	}
}

// clockOnly is a time without its day, in UTC.
const clockOnly = "15:04:05.000Z"

// Columns of a log line.
const (
	agoColumns       = 9
	seqColumns       = 6
	aggregateColumns = 30
	shortColumns     = 20
	narrow           = 100 // on a terminal with fewer, the time ago gives way too
	tight            = 80  // with fewer still, so do the milliseconds, the kind and the room for longer facts: else no detail is left
	tightColumns     = 16
	factColumns      = 18
	actorColumns     = 26
)

// Line is an event as a line of the log: exact time, time ago, sequence, aggregate, fact, actor, detail. On a terminal,
// which is narrow, the day of today, the last part of an aggregate's name and the actor, if it is a daemon, give way.
func (v View) Line(e Event) string {
	ago, seq, detail := fill(term.Ago(v.Now, e.Time), agoColumns), fill(fmt.Sprintf("#%d", e.Seq), seqColumns), e.Fact.Text()
	what := v.Paint.Text(e.style(), fill(e.Fact.What, factColumns))
	if v.Width == 0 {
		line := []string{term.Exact(e.Time), ago, seq, fill(e.Aggregate.String(), aggregateColumns), what, fill(fact.Actor(e.Actor), actorColumns), detail}
		return strings.TrimRight(strings.Join(line, "  "), " ")
	}
	at := term.Exact(e.Time)
	today := e.Time.UTC().Format(time.DateOnly) == v.Now.UTC().Format(time.DateOnly)
	if today {
		at = e.Time.UTC().Format(clockOnly)
	}
	name := e.Aggregate.String()
	if parts := strings.Split(name, "/"); len(parts) == 4 {
		name = strings.Join(parts[:3], "/") // without the start of the resource's UID
	}
	if !strings.HasPrefix(e.Actor, "daemon/") {
		detail = strings.TrimPrefix(detail+"; by "+fact.Actor(e.Actor), "; ")
	}
	line := []string{v.Paint.Text(term.Dim, at), ago, seq, v.Paint.Text(term.Cyan, fill(term.Fit(name, shortColumns), shortColumns)), what, detail}
	if v.Width < narrow {
		line = slices.Delete(line, 1, 2) // the time ago
	}
	if v.Width < tight {
		_, id, _ := strings.Cut(name, "/")
		if today {
			line[0] = v.Paint.Text(term.Dim, e.Time.UTC().Format(time.TimeOnly))
		}
		line[2] = v.Paint.Text(term.Cyan, fill(term.Fit(id, tightColumns), tightColumns))
		line[3] = v.Paint.Text(e.style(), e.Fact.What)
	}
	return strings.TrimRight(term.Fit(strings.Join(line, "  "), v.Width), " ")
}

func fill(s string, columns int) string { return fmt.Sprintf("%-*s", columns, s) }

// timelineMax is how many of the last rows a timeline shows.
const timelineMax = 60

// EventRow is a row of a timeline: an event, or several in a row that say the same of different objects.
type EventRow struct {
	Event
	// Last is the sequence of the last of them, and Commits how many there are.
	Last    uint64
	Commits int
}

// Join adds the next event to the row, if it says the same of other objects.
func (r *EventRow) Join(e Event) bool {
	joined, ok := r.Fact.Join(e.Fact)
	if !ok || r.Actor != e.Actor {
		return false
	}
	r.Fact, r.Last, r.Commits = joined, e.Seq, r.Commits+1
	return true
}

// Timeline is a Move's events as a table, and how many earlier rows were left out.
func (v View) Timeline(events []Event) (lines []string, left int) {
	rows := eventRows(events)
	left = max(0, len(rows)-timelineMax)
	t := term.Table{Header: []string{"TIME", "AFTER", "SEQ", "FACT", "DETAIL"}, Indent: "  ", Wrap: 1}
	if v.Width == 0 {
		t.Header = append(t.Header, "ACTOR")
	}
	for _, r := range rows[left:] {
		t.Add(v.cells(r, events[0].Time)...)
	}
	return t.Lines(v.Paint, v.Width), left
}

// eventRows joins events in a row that say the same of different objects.
func eventRows(events []Event) []EventRow {
	var out []EventRow
	for _, e := range events {
		if n := len(out); n == 0 || !out[n-1].Join(e) {
			out = append(out, EventRow{Event: e, Last: e.Seq, Commits: 1})
		}
	}
	return out
}

// cells of a row. On a terminal, which is narrow, the day is left out and an actor named only if it is no daemon.
func (v View) cells(r EventRow, start time.Time) []string {
	seq, detail := fmt.Sprint(r.Seq), r.Fact.Text()
	if r.Commits > 1 {
		seq = fmt.Sprintf("%d-%d", r.Seq, r.Last)
		detail += fmt.Sprintf(" (in %d commits)", r.Commits)
	}
	after := r.Time.Sub(start)
	in := "+" + term.Span(after)
	if after < time.Minute {
		in = fmt.Sprintf("+%.3fs", after.Seconds())
	}
	cells := []string{term.Exact(r.Time), in, seq, v.Paint.Text(r.style(), r.Fact.What), detail}
	switch {
	case v.Width == 0:
		return append(cells, fact.Actor(r.Actor))
	case !strings.HasPrefix(r.Actor, "daemon/"):
		cells[4] = strings.TrimPrefix(detail+"; by "+fact.Actor(r.Actor), "; ")
	}
	cells[0] = r.Time.UTC().Format(clockOnly)
	return cells
}
