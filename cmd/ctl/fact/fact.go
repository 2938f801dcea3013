package fact

import (
	"cmp"
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

// Fact describes an event in words.
type Fact struct {
	// What names the event in a few words: "objects created".
	What string
	// Task is the task of a run, or the machine, that the event is about; may be empty.
	Task string
	// Detail is a line with details; may be empty.
	Detail string
	// Objects are the objects of the event unless Detail names them. Place is where they are: "on the target".
	Objects []object.Ref
	Place   string
}

// Text returns the detail and the objects as a line.
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

// Join merges two consecutive facts that differ only in their objects.
func (f Fact) Join(next Fact) (joined Fact, ok bool) {
	if f.What != next.What || len(f.Objects) == 0 || len(next.Objects) == 0 {
		return f, false
	}
	f.Objects = slices.Concat(f.Objects, next.Objects)
	f.Detail = "" // it is about the objects of one commit
	return f, true
}

// Words describes events of every kind that scute writes.
type Words struct {
	of map[eventlog.Kind]func(eventlog.Event) (Fact, error)
}

// New returns Words for every kind.
func New() *Words {
	return &Words{of: map[eventlog.Kind]func(eventlog.Event) (Fact, error){
		eventlog.KindMove: words(mover.NewCatalog(), move), eventlog.KindRun: words(workflow.NewCatalog(), run),
		eventlog.KindRemediation: words(remediator.NewCatalog(), remediation), eventlog.KindPause: words(request.NewCatalog(), pauses),
		eventlog.KindBackup: words(schedule.NewCatalog(), schedules), eventlog.KindDaemon: words(trust.NewCatalog(), daemon),
	}}
}

// words returns a function that decodes an event of a domain and describes it with say.
func words[E any](catalog *eventlog.Catalog[E], say func(E) Fact) func(eventlog.Event) (Fact, error) {
	return func(ev eventlog.Event) (f Fact, err error) {
		e, err := catalog.Decode(ev)
		if err == nil {
			f = say(e)
		}
		f.What = cmp.Or(f.What, name(ev.Type))
		return f, err
	}
}

// Of describes an event. The default of What is the name in the event's type. An event of an unknown type is described by its type.
func (w *Words) Of(kind eventlog.Kind, ev eventlog.Event) Fact {
	if of := w.of[kind]; of != nil {
		if f, err := of(ev); err == nil {
			return f
		}
	}
	return Fact{What: name(ev.Type), Detail: fmt.Sprintf("type %s is not known to this scutectl: %d bytes of data", ev.Type, len(ev.Data))}
}

// name returns the name in an event's type: "all created" for "dev.scute.move.all-created.v1".
func name(eventType string) string {
	parts := strings.Split(eventType, ".")
	if len(parts) < 2 {
		return eventType
	}
	return strings.ReplaceAll(parts[len(parts)-2], "-", " ")
}
