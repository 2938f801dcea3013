package fact

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/schedule"
	"scute.dev/pause/request"
	"scute.dev/remediator"
	"scute.dev/workflow"
)

// Fact is an event in words.
type Fact struct {
	// What happened, in a few words: "objects created".
	What string
	// Task of a run, or the machine, that it happened to; "" if it is no task's.
	Task string
	// Detail says more, in a line; may be empty.
	Detail string
	// Objects that it happened to, where Detail does not name them, and where: "on the target".
	Objects []object.Ref
	Place   string
}

// Text is the detail and the objects in a line.
func (f Fact) Text() string {
	switch {
	case f.Task != "" && f.Detail != "":
		return term.Clean(f.Task + ": " + f.Detail)
	case f.Task != "":
		return term.Clean(f.Task)
	case len(f.Objects) == 0:
		return term.Clean(f.Detail)
	case f.Place != "":
		return term.Clean(join(f.Place+": "+refs(f.Objects), f.Detail))
	default:
		return term.Clean(join(refs(f.Objects), f.Detail))
	}
}

// Join makes one of two facts in a row, where they say the same of different objects.
func (f Fact) Join(next Fact) (joined Fact, ok bool) {
	if f.What != next.What || len(f.Objects) == 0 || len(next.Objects) == 0 {
		return f, false
	}
	f.Objects = slices.Concat(f.Objects, next.Objects)
	f.Detail = "" // it counted one commit's
	return f, true
}

// Words reads events of every kind that scute writes.
type Words struct {
	moves        *eventlog.Catalog[mover.Event]
	runs         *eventlog.Catalog[workflow.Event]
	remediations *eventlog.Catalog[remediator.Event]
	pauses       *eventlog.Catalog[request.Event]
	schedules    *eventlog.Catalog[schedule.Event]
	daemon       *eventlog.Catalog[trust.Event]
}

// New makes a reader.
func New() *Words {
	return &Words{
		moves: mover.NewCatalog(), runs: workflow.NewCatalog(), remediations: remediator.NewCatalog(), pauses: request.NewCatalog(),
		schedules: schedule.NewCatalog(), daemon: trust.NewCatalog(),
	}
}

// Of says what an event says. One of a type that this program does not know is told by its type.
func (w *Words) Of(kind eventlog.Kind, ev eventlog.Event) Fact {
	switch kind {
	case eventlog.KindMove:
		if e, err := w.moves.Decode(ev); err == nil {
			return move(e)
		}
	case eventlog.KindRun:
		if e, err := w.runs.Decode(ev); err == nil {
			return run(e)
		}
	case eventlog.KindRemediation:
		if e, err := w.remediations.Decode(ev); err == nil {
			if f, known := remediation(e); known {
				return f
			}
			return Fact{What: name(ev.Type)}
		}
	case eventlog.KindPause:
		if e, err := w.pauses.Decode(ev); err == nil {
			return pauses(e)
		}
	case eventlog.KindBackup:
		if e, err := w.schedules.Decode(ev); err == nil {
			return schedules(e)
		}
	case eventlog.KindDaemon:
		if e, err := w.daemon.Decode(ev); err == nil {
			return daemon(e)
		}
	}
	return Fact{What: name(ev.Type), Detail: fmt.Sprintf("type %s is not known to this scutectl: %d bytes of data", ev.Type, len(ev.Data))}
}

// name is the fact's own name in a type: "dev.scute.move.all-created.v1" is "all created".
func name(eventType string) string {
	parts := strings.Split(eventType, ".")
	if len(parts) < 2 {
		return eventType
	}
	return strings.ReplaceAll(parts[len(parts)-2], "-", " ")
}
