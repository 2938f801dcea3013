package remediator

import (
	"reflect"
	"slices"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/view"
)

// definition contains everything about a type of event except its data (events.go) and its effect
// on the state (apply.go).
type definition struct {
	event    Event // zero value of the type
	fact     eventlog.Fact[Event]
	links    links
	describe func(before *State, e Event) view.Line
	// notices contains the kinds of Kubernetes events that may be sent about the event. The first
	// one that applies is sent.
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
	facts := make([]eventlog.Fact[Event], 0, len(definitions))
	for _, d := range definitions {
		facts = append(facts, d.fact)
	}
	return eventlog.NewCatalog(eventlog.KindRemediation, facts...)
}

// links contains the link that identifies an event to its effects (is), and the links of its
// possible causes (follows).
type links struct {
	is      link
	follows []link
}

// link is the kind of a key that events use to refer to their causes.
type link string

const (
	linkMark                 link = "mark"      // of a machine
	linkCleared              link = "cleared"   // the mark of a machine
	linkOrder                link = "order"     // an operator's order about a machine
	linkDecided              link = "decided"   // about a machine
	linkEscalationStart      link = "escalates" // the start of an escalation step of a machine
	linkEscalationEnd        link = "escalated" // the end of an escalation step of a machine
	linkStep                 link = "step"      // a step of the active remediation
	linkFrozen               link = "frozen"    // a freeze of the active remediation
	linkEnd                  link = "end"       // the end of the last remediation
	linkPassed               link = "passed"    // the last mass failure
	linkDefragmentationStart link = "cares"     // the start of a defragmentation
	linkDefragmentationEnd   link = "cared"     // the end of the last defragmentation
)

// The links of several events. Observations of the owner and claims of a process have no cause.
var (
	noLinks    = links{}
	startLinks = links{is: linkStep, follows: from(linkDecided)}
	stepLinks  = links{is: linkStep, follows: from(linkStep)}
	endLinks   = links{is: linkEnd, follows: from(linkStep)}
)

func from(causes ...link) []link { return causes }

// key returns the key of a link. Only the key of a link of a machine contains the machine's UID,
// because an owner has one active remediation.
func (l link) key(m Subject) aggregate.Key {
	switch l {
	case linkMark, linkCleared, linkOrder, linkDecided, linkEscalationStart, linkEscalationEnd:
		return aggregate.Key{Kind: string(l), Name: string(m.UID)}
	default:
		return aggregate.Key{Kind: string(l)}
	}
}

// Links returns the links of an event to other events of the owner. s is the state before the
// event. The event's own keys do not depend on s.
func Links(s *State, e Event) aggregate.Links {
	about, d := SubjectOf(s, e), definitionOf(e).links
	var l aggregate.Links
	if d.is != "" {
		l.Keys = []aggregate.Key{d.is.key(about)}
	}
	for _, cause := range s.causes(e, d.follows) {
		l.CauseKeys = append(l.CauseKeys, cause.key(about))
	}
	return l
}

// causes returns the links of the possible causes of an event. follows contains the links in the
// event's definition, to which the state s before the event may add, or which it may replace.
func (s *State) causes(e Event, follows []link) []link {
	m := SubjectOf(s, e)
	switch e := e.(type) {
	case MachineMarked:
		if !s.record(m.UID).marked() {
			return nil // an observation
		}
	case Decided:
		return slices.Concat(follows, s.waitedFor(m))
	case EscalationEnded:
		if e.Outcome == stepCancelled && s.record(m.UID).Aborted {
			return from(linkOrder)
		}
	case CancelStarted:
		switch {
		case e.Cause == Aborted && s.record(m.UID).Aborted:
			return from(linkOrder)
		case e.Cause == Recovered && s.Active != nil && !s.record(m.UID).marked():
			return from(linkCleared)
		}
	}
	return follows
}

// waitedFor returns links to the end of the remediation or mass failure for which the last decision
// about a machine waited. The remediation may be of this machine or of another machine.
func (s *State) waitedFor(m Subject) (list []link) {
	u := s.record(m.UID)
	if u.DecidedAt.IsZero() {
		return nil
	}
	if slices.ContainsFunc(s.History, func(past pastRemediation) bool {
		return past.Outcome != EndRecovered && past.EndedAt.After(u.DecidedAt) && (past.Victim.UID == u.UID || u.Decision.Rule == ruleTurn)
	}) {
		list = append(list, linkEnd)
	}
	passed := s.MassFailureEnded
	if u.Decision.Rule != rulePolicyMassFailure {
		passed = s.Mass.Ended[u.Decision.Domain]
	}
	if slices.Contains([]string{rulePolicyMassFailure, ruleMassFailure, ruleFailureDomain}, u.Decision.Rule) && passed.After(u.DecidedAt) {
		list = append(list, linkPassed)
	}
	return list
}
