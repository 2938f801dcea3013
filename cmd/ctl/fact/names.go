package fact

import (
	"encoding/json"
	"strings"

	"scute.dev/eventlog"
)

// Names returns all values of Fact.What for events of some types.
func Names(types []string) map[string]bool {
	names, words := make(map[string]bool), New()
	for _, eventType := range types {
		kind := strings.Split(eventType, ".")[2]
		names[words.Of(eventlog.Kind(kind), eventlog.Event{Type: eventType, Data: json.RawMessage("{}")}).What] = true
	}
	for _, what := range []string{ // events with other data
		"waiting for a permission", "stranded", "handler failed", "giving back", "given back", "extra machine", "setback over",
	} {
		names[what] = true
	}
	return names
}
