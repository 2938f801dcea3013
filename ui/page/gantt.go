package page

import (
	"time"

	runs "scute.dev/cmd/ctl/run"
	"scute.dev/ui/draw"
)

// Sizes in SVG user units, and limits.
const (
	ganttNames = 190
	ganttWidth = 900
	ganttRow   = 20
	ganttTop   = 22
	ganttRows  = 40
	ganttTries = 20
)

type attemptBar struct {
	chip
	X, Width    int
	Undo        bool
	Label       string // for screen readers
	Began       time.Time
	Took        time.Duration
	Attempt     int
	Description string
}

type ganttTask struct {
	Name, Link string
	Y          int
	Tries      []attemptBar
}

type gantt struct {
	Width, Height, Names int
	Rows                 []ganttTask
	Ticks                []draw.Tick
	Left                 int // number of omitted tasks
	Cut                  int // number of attempts shown of a task that has more; otherwise 0
}

// gantt draws the attempts of the named tasks, and reports whether there are any.
func (v *view) gantt(r *runs.Run, names []string) (g gantt, drawn bool) {
	var rows []ganttTask
	axis := draw.Axis{Width: ganttWidth - ganttNames - 60}
	axis.Begin, axis.End = extent(r, names, v.Moment)
	for _, name := range names {
		if tries := bars(axis, r.History.Task(name), v.Moment); len(tries) > 0 {
			if len(tries) > ganttTries {
				tries, g.Cut = tries[len(tries)-ganttTries:], ganttTries
			}
			rows = append(rows, ganttTask{Name: name, Tries: tries, Link: v.With("task", name) + "#task"})
		}
	}
	if len(rows) == 0 {
		return g, false
	}
	g.Width, g.Names, g.Ticks, g.Left = ganttWidth, ganttNames, axis.Ticks(8), max(0, len(rows)-ganttRows)
	g.Rows = rows[:min(len(rows), ganttRows)]
	for i := range g.Rows {
		g.Rows[i].Y = ganttTop + i*ganttRow
	}
	g.Height = ganttTop + len(g.Rows)*ganttRow + 4
	return g, true
}

func extent(r *runs.Run, names []string, now time.Time) (begin, end time.Time) {
	for _, name := range names {
		for _, a := range r.History.Task(name).Attempts {
			if begin.IsZero() || a.Started.Before(begin) {
				begin = a.Started
			}
			if e := endOf(a, now); e.After(end) {
				end = e
			}
		}
	}
	return begin, end
}

func endOf(a runs.Attempt, now time.Time) time.Time {
	if a.Ended.IsZero() {
		return now
	}
	return a.Ended
}

func bars(axis draw.Axis, t runs.TaskHistory, now time.Time) (tries []attemptBar) {
	for _, a := range t.Attempts {
		try := tryOf(a, now)
		try.X, try.Width = axis.Bar(a.Started, endOf(a, now))
		try.Label = "attempt"
		if a.Undo {
			try.Label = "undo"
		}
		if a.Step != "" {
			try.Label = a.Step + ", " + try.Label
		}
		tries = append(tries, try)
	}
	return tries
}
