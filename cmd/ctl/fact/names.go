package fact

import (
	"encoding/json"
	"strings"

	"scute.dev/eventlog"
)

// Names are what the events of some types may be called.
func Names(types []string) map[string]bool {
	names, words := make(map[string]bool), New()
	for _, eventType := range types {
		kind := strings.Split(eventType, ".")[2]
		names[words.Of(eventlog.Kind(kind), eventlog.Event{Type: eventType, Data: json.RawMessage("{}")}).What] = true
	}
	for _, what := range []string{ // what events with other data are called
		"waiting for a permission", "stranded", "handler failed", "giving back", "given back", "extra machine", "setback over",
	} {
		names[what] = true
	}
	return names
}
