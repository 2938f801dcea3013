package fact

import (
	"fmt"
	"strings"

	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Fact is an event in words.
type Fact struct {
	// What happened, in a few words: "objects created".
	What string
	// Detail is what it happened to, in a line; may be empty.
	Detail string
}

// Words reads events of every kind that scute writes.
type Words struct {
	moves *eventlog.Catalog[mover.Event]
}

// New makes a reader.
func New() *Words { return &Words{moves: mover.NewCatalog()} }

// Of says what an event says. One of a type that this program does not know is told by its type.
func (w *Words) Of(kind eventlog.Kind, ev eventlog.Event) Fact {
	if kind == eventlog.KindMove {
		if e, err := w.moves.Decode(ev); err == nil {
			f := move(e)
			f.Detail = term.Clean(f.Detail)
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
