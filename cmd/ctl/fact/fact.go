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
	of map[eventlog.Kind]func(eventlog.Event) (Fact, error)
}

// New makes a reader.
func New() *Words {
	return &Words{of: map[eventlog.Kind]func(eventlog.Event) (Fact, error){
		eventlog.KindMove: words(mover.NewCatalog(), move), eventlog.KindRun: words(workflow.NewCatalog(), run),
		eventlog.KindRemediation: words(remediator.NewCatalog(), remediation), eventlog.KindPause: words(request.NewCatalog(), pauses),
		eventlog.KindBackup: words(schedule.NewCatalog(), schedules), eventlog.KindDaemon: words(trust.NewCatalog(), daemon),
	}}
}

// words returns a function that decodes an event of a domain, and says it in words.
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

// Of says what an event says. A fact that has no other name has the name of its type. One of a type that this program does not know is
// told by its type.
func (w *Words) Of(kind eventlog.Kind, ev eventlog.Event) Fact {
	if of := w.of[kind]; of != nil {
		if f, err := of(ev); err == nil {
			return f
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
