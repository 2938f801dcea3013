package kit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"scute.dev/backup/schedule"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/remediator"
	"scute.dev/view"
	"scute.dev/workflow"
)

// Domain is a kind of aggregates in the log.
type Domain struct {
	Kind eventlog.Kind
	// Types are the event types that scute writes, with the Go type of their data.
	Types    map[string]reflect.Type
	describe func(eventlog.Event) (view.Line, error)
}

// Domains returns all domains in the order in which users see them. A domain added here appears in
// every command and on every page. The caller must not change the result.
func Domains() []Domain { return domains() }

// domains returns all domains. It builds their catalogs only once, because each page lists the
// kinds.
var domains = sync.OnceValue(func() []Domain { //nolint:gochecknoglobals // immutable
	return []Domain{
		define(eventlog.KindRun, workflow.NewCatalog(), workflow.Describe),
		define(eventlog.KindMove, mover.NewCatalog(), mover.Describe),
		define(eventlog.KindRemediation, remediator.NewCatalog(), func(e remediator.Event) view.Line {
			return remediator.Describe(&remediator.State{}, e)
		}),
		define(eventlog.KindPause, request.NewCatalog(), request.Describe),
		define(eventlog.KindBackup, schedule.NewCatalog(), schedule.Describe),
		define(eventlog.KindDaemon, trust.NewCatalog(), trust.Describe),
	}
})

func define[E any](kind eventlog.Kind, catalog *eventlog.Catalog[E], describe func(E) view.Line) Domain {
	return Domain{Kind: kind, Types: catalog.Types(), describe: func(ev eventlog.Event) (view.Line, error) {
		e, err := catalog.Decode(ev)
		if err != nil {
			return view.Line{}, err
		}
		return describe(e), nil
	}}
}

// Kinds returns the kinds of all domains.
func Kinds() (kinds []string) {
	for _, d := range Domains() {
		kinds = append(kinds, string(d.Kind))
	}
	return kinds
}

// EventTypes returns the event types that scute writes, with the Go type of their data. A type ends
// with the version of its data, so its schema never changes.
func EventTypes() map[string]reflect.Type {
	types := make(map[string]reflect.Type)
	for _, d := range Domains() {
		maps.Copy(types, d.Types)
	}
	return types
}

// lineOf describes an event in words. For an unknown event it names the type of the event. The name
// from the type is also the default for a known event.
func lineOf(kind eventlog.Kind, ev eventlog.Event) view.Line {
	unknown := view.Line{Name: name(ev.Type), Detail: fmt.Sprintf("this scutectl does not know the type %s (%d bytes of data)", ev.Type, len(ev.Data))}
	i := slices.IndexFunc(Domains(), func(d Domain) bool { return d.Kind == kind })
	if i < 0 {
		return unknown
	}
	line, err := Domains()[i].describe(ev)
	switch {
	case err != nil:
		return unknown
	case line.Name == "":
		line.Name = name(ev.Type)
	}
	return line
}

// name returns the name contained in an event's type: "all created" for
// "dev.scute.move.all-created.v1".
func name(eventType string) string {
	parts := strings.Split(eventType, ".")
	if len(parts) < 2 {
		return eventType
	}
	return strings.ReplaceAll(parts[len(parts)-2], "-", " ")
}

// factNames returns the names that a described event can have. Users can select events by these
// names.
func factNames() map[string]bool {
	names := make(map[string]bool)
	for _, d := range Domains() {
		for eventType := range d.Types {
			names[lineOf(d.Kind, eventlog.Event{Type: eventType, Data: json.RawMessage("{}")}).Name] = true
		}
	}
	for _, name := range []string{ // names of events whose data is not empty
		"stranded", "handler failed", "releasing hold", "hold released", "extra machine", "transient failure resolved",
	} {
		names[name] = true
	}
	return names
}

// Actor formats an actor for a terminal. It marks an actor that only the client claims.
func Actor(actor string) string {
	if eventlog.Unverified(actor) {
		return cli.Clean(actor) + " (unverified)"
	}
	return cli.Clean(actor)
}
