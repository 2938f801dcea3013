package kit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/view"
)

// Event is an event and its position in the log.
type Event struct {
	eventlog.Event
	Seq       uint64
	Index     int // in its commit
	Aggregate eventlog.Aggregate
	Line      view.Line
	Subject   subject
}

// Text returns the line without its name, safe for a terminal.
func (e Event) Text() string { return cli.Clean(e.Line.Text()) }

// Events returns the events of a commit. A commit that cannot be decoded becomes one event, so that
// it is shown and counted.
func Events(r eventlog.Record) []Event {
	events, err := r.Events()
	if err != nil {
		return []Event{{
			Seq: r.Seq, Aggregate: r.Aggregate, Event: eventlog.Event{Time: r.Stored},
			Line: view.Line{Name: "not readable", Detail: fmt.Sprintf("on subject %s: %v", r.Subject(), err)},
		}}
	}
	out := make([]Event, len(events))
	for i, ev := range events {
		out[i] = Event{Event: ev, Seq: r.Seq, Index: i, Aggregate: r.Aggregate, Line: lineOf(r.Aggregate.Kind, ev)}
	}
	return out
}

func (e Event) style() cli.Style {
	if t := ToneOf(e.Line.Name); t.Class == "ok" || t.Class == "bad" || t.Class == "warn" {
		return t.Style()
	}
	return cli.Plain
}

const clockOnly = "15:04:05.000Z"

const (
	agoColumns       = 9
	seqColumns       = 6
	aggregateColumns = 30
	shortColumns     = 20
	narrow           = 100 // a narrower terminal omits the time ago
	tight            = 80  // an even narrower one also omits milliseconds, the kind and padding
	tightColumns     = 16
	factColumns      = 18
	actorColumns     = 26
)

// Line renders an event as a line of the log: time, time ago, sequence, aggregate, fact, actor,
// detail. A terminal omits today's date, the last part of an aggregate's name, and daemons as
// actors.
func (v View) Line(e Event) string {
	ago, seq, detail := fill(cli.Ago(v.Now, e.Time), agoColumns), fill(fmt.Sprintf("#%d", e.Seq), seqColumns), e.Text()
	what := v.Paint.Text(e.style(), fill(e.Line.Name, factColumns))
	if v.Width == 0 {
		line := []string{cli.Exact(e.Time), ago, seq, fill(e.Aggregate.String(), aggregateColumns), what, fill(Actor(e.Actor), actorColumns), detail}
		return strings.TrimRight(strings.Join(line, "  "), " ")
	}
	at := cli.Exact(e.Time)
	today := e.Time.UTC().Format(time.DateOnly) == v.Now.UTC().Format(time.DateOnly)
	if today {
		at = e.Time.UTC().Format(clockOnly)
	}
	name := e.Aggregate.String()
	if parts := strings.Split(name, "/"); len(parts) == 4 {
		name = strings.Join(parts[:3], "/") // without the start of the resource's UID
	}
	line := []string{v.Paint.Text(cli.Dim, at), ago, seq, v.Paint.Text(cli.Cyan, fill(cli.Fit(name, shortColumns), shortColumns)), what, e.withActor(detail)}
	if v.Width < narrow {
		line = slices.Delete(line, 1, 2) // the time ago
	}
	if v.Width < tight {
		_, id, _ := strings.Cut(name, "/")
		if today {
			line[0] = v.Paint.Text(cli.Dim, e.Time.UTC().Format(time.TimeOnly))
		}
		line[2] = v.Paint.Text(cli.Cyan, fill(cli.Fit(id, tightColumns), tightColumns))
		line[3] = v.Paint.Text(e.style(), e.Line.Name)
	}
	return strings.TrimRight(cli.Fit(strings.Join(line, "  "), v.Width), " ")
}

func fill(s string, columns int) string { return fmt.Sprintf("%-*s", columns, s) }

// timelineMax is the number of rows, counted from the last one, that a timeline shows.
const timelineMax = 60

// EventRow is an event, or consecutive events with the same fact about different objects.
type EventRow struct {
	Event
	// Last is the sequence of the last event, and Commits the number of joined events.
	Last    uint64
	Commits int
}

// Join reports whether the next event has the same fact and actor as the row, and if so, adds the
// event to the row.
func (r *EventRow) Join(e Event) bool {
	merged, ok := r.Line.Merge(e.Line)
	if !ok || r.Actor != e.Actor {
		return false
	}
	r.Line, r.Last, r.Commits = merged, e.Seq, r.Commits+1
	return true
}

// Timeline renders events as a table of the latest rows, and returns how many earlier rows it
// omitted.
func (v View) Timeline(events []Event) (lines []string, left int) {
	rows := eventRows(events)
	left = max(0, len(rows)-timelineMax)
	t := cli.Table{Header: []string{"TIME", "AFTER", "SEQ", "FACT", "DETAIL"}, Indent: "  ", Wrap: 1}
	if v.Width == 0 {
		t.Header = append(t.Header, "ACTOR")
	}
	for _, r := range rows[left:] {
		t.Add(v.cells(r, events[0].Time)...)
	}
	return t.Lines(v.Paint, v.Width), left
}

func eventRows(events []Event) []EventRow {
	var out []EventRow
	for _, e := range events {
		if n := len(out); n == 0 || !out[n-1].Join(e) {
			out = append(out, EventRow{Event: e, Last: e.Seq, Commits: 1})
		}
	}
	return out
}

// cells renders a row. A terminal omits the date, and daemons as actors.
func (v View) cells(r EventRow, start time.Time) []string {
	seq, detail := fmt.Sprint(r.Seq), r.Text()
	if r.Commits > 1 {
		seq = fmt.Sprintf("%d-%d", r.Seq, r.Last)
		detail += fmt.Sprintf(" (in %d commits)", r.Commits)
	}
	after := r.Time.Sub(start)
	in := "+" + cli.Span(after)
	if after < time.Minute {
		in = fmt.Sprintf("+%.3fs", after.Seconds())
	}
	cells := []string{cli.Exact(r.Time), in, seq, v.Paint.Text(r.style(), r.Line.Name), detail}
	if v.Width == 0 {
		return append(cells, Actor(r.Actor))
	}
	cells[4] = r.withActor(detail)
	cells[0] = r.Time.UTC().Format(clockOnly)
	return cells
}

// withActor returns detail with the actor appended, unless the actor is a daemon.
func (e Event) withActor(detail string) string {
	if strings.HasPrefix(e.Actor, "daemon/") {
		return detail
	}
	return strings.TrimPrefix(detail+"; by "+Actor(e.Actor), "; ")
}
