package domain

import (
	"encoding/json"

	"scute.dev/eventlog"
)

// Names returns the names of all lines, which events can be selected by.
func Names() map[string]bool {
	names := make(map[string]bool)
	for _, d := range All() {
		for eventType := range d.Types {
			names[Line(d.Kind, eventlog.Event{Type: eventType, Data: json.RawMessage("{}")}).Name] = true
		}
	}
	for _, name := range []string{ // of events with other data
		"waiting for a permission", "stranded", "handler failed", "releasing hold", "hold released", "extra machine", "setback over",
	} {
		names[name] = true
	}
	return names
}
