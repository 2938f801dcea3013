package remediator

import (
	"reflect"

	"scute.dev/eventlog"
	"scute.dev/view"
)

// definition has everything about a type of event except its data (events.go) and its effect on the state (apply.go).
type definition struct {
	event    Event // zero value of the type
	fact     eventlog.Fact[Event]
	links    links
	describe func(before *State, e Event) view.Line
	// notices are the Kubernetes events that users may get of it. The first one that applies is sent.
	notices []notice
}

// define returns the definition of a type of event, with its name and its version in the log.
func define[E Event](name string, version int, links links, describe func(before *State, e E) view.Line, notices ...notice) definition {
	var event E
	return definition{event: event, fact: eventlog.Define[Event, E](name, version), links: links, notices: notices, describe: func(s *State, e Event) view.Line {
		typed, ok := e.(E)
		if !ok {
			return view.Line{}
		}
		return describe(s, typed)
	}}
}

func definitionOf(e Event) *definition {
	return find(definitions, func(d *definition) bool { return reflect.TypeOf(d.event) == reflect.TypeOf(e) })
}

// NewCatalog returns the catalog that maps the events of remediations to their types in the log.
func NewCatalog() *eventlog.Catalog[Event] {
	facts := []eventlog.Fact[Event]{eventlog.Upcast[Event]("escalation-ended", 1, escalationEndedV1.v2)}
	for _, d := range definitions {
		facts = append(facts, d.fact)
	}
	return eventlog.NewCatalog(eventlog.KindRemediation, facts...)
}

// escalationEndedV1 is version 1 of EscalationEnded. A step without Failed had timed out, was cancelled, or had ended because the machine recovered.
// Older programs recorded the recovery as Cured.
type escalationEndedV1 struct {
	Machine Subject `json:"machine"`
	Step    string  `json:"rung"`
	Failed  string  `json:"failed,omitempty"`
	Cured   bool    `json:"cured,omitempty"`
}

// v2 returns the event in version 2. It must not be changed for a version 3: it must then return a separate struct.
func (v1 escalationEndedV1) v2() EscalationEnded {
	v2 := EscalationEnded{Machine: v1.Machine, Step: v1.Step, Reason: v1.Failed}
	switch {
	case v1.Cured:
		v2.Outcome = StepRecovered
	case v1.Failed != "":
		v2.Outcome = StepFailed
	}
	return v2
}
