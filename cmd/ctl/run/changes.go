package run

import (
	"fmt"
	"io"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/runs"
	"scute.dev/cmd/ctl/term"
	"scute.dev/cmd/ctl/watch"
)

// changes shows how a run stands again and again.
func (d *deps) changes(format output.Format) watch.Drawer[*runs.Run] {
	switch draw := d.drawer(format).(type) {
	case *display:
		return &redrawn{draw}
	default:
		return &differences{deps: d, out: d.stream(format)}
	}
}

// redrawn is the display of a terminal.
type redrawn struct{ *display }

// Draw redraws it.
func (t *redrawn) Draw(r *runs.Run) error {
	t.draw(r)
	return nil
}

// Tick moves the clock on.
func (t *redrawn) Tick(r *runs.Run) { t.draw(r) }

// differences writes a line for each task, and for the run, that has changed.
type differences struct {
	*deps
	out   io.Writer
	tasks map[string]string
	run   string
}

// Draw writes what has changed.
func (l *differences) Draw(r *runs.Run) error {
	if l.tasks == nil {
		l.tasks = make(map[string]string)
	}
	for _, t := range r.Status.Tasks {
		line := string(t.Phase)
		if t.Attempts > 1 {
			line += fmt.Sprintf(" (attempt %d)", t.Attempts)
		}
		if t.Message != "" {
			line += ": " + t.Message
		}
		before, known := l.tasks[t.Name]
		l.tasks[t.Name] = line
		if before == line || !known && t.Phase == v1alpha1.TaskPending {
			continue
		}
		if err := l.write(t.Name, line); err != nil {
			return err
		}
	}
	if line := string(r.Phase()); line != l.run {
		l.run = line
		return l.write("run", line)
	}
	return nil
}

func (l *differences) write(who, what string) error {
	_, err := fmt.Fprintf(l.out, "%s  %s  %s\n", term.Exact(l.Env.Now()), who, term.Clean(what))
	return err
}

// Tick has nothing to add: a line has its time.
func (*differences) Tick(*runs.Run) {}
