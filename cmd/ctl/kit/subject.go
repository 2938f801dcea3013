package kit

import (
	"slices"

	"scute.dev/eventlog"
	"scute.dev/remediator"
)

type subject struct {
	Clusters, Machines []string
	// AnyCluster is set if the event is about all clusters of a namespace, whose names are not in the
	// log yet.
	AnyCluster bool
}

// Subjects determines which clusters and machines an event is about. It must receive all events of
// an aggregate, because most events do not repeat what earlier events contain.
type Subjects struct {
	remediations *eventlog.Catalog[remediator.Event]
	known        map[eventlog.Aggregate]subject
	owners       map[eventlog.Aggregate]*remediator.State // nil if the owner's first events are unknown
}

// NewSubjects returns a Subjects that has received no event yet.
func NewSubjects() *Subjects {
	return &Subjects{
		remediations: remediator.NewCatalog(),
		known:        make(map[eventlog.Aggregate]subject), owners: make(map[eventlog.Aggregate]*remediator.State),
	}
}

// Events returns the events of the next commit with their subjects. If a remediation's event does
// not name the machine, Events adds the machine to the event's line.
func (s *Subjects) Events(r eventlog.Record) []Event { return s.addTo(Events(r)) }

func (s *Subjects) addTo(events []Event) []Event {
	for i := range events {
		e := &events[i]
		e.Subject = s.of(*e)
		if e.Aggregate.Kind == eventlog.KindRemediation && e.Line.About == "" && len(e.Subject.Machines) == 1 {
			e.Line.About = e.Subject.Machines[0]
		}
	}
	return events
}

// of returns the subject of the next event. If the event cannot be decoded, it returns the subject
// of the earlier events.
func (s *Subjects) of(e Event) subject {
	switch e.Aggregate.Kind {
	case eventlog.KindRemediation:
		return s.remediation(e)
	case eventlog.KindMove, eventlog.KindPause, eventlog.KindBackup:
	default:
		return subject{}
	}
	about := s.known[e.Aggregate]
	if line := e.Line; line.Clusters != nil || line.AllClusters {
		clusters := line.Clusters
		if e.Aggregate.Kind == eventlog.KindPause { // the named Clusters, and those that labels have selected until now
			clusters = slices.Compact(slices.Sorted(slices.Values(slices.Concat(about.Clusters, clusters))))
		}
		about = subject{Clusters: clusters, AnyCluster: line.AllClusters && len(clusters) == 0}
	}
	about.Machines = nil
	for _, o := range e.Line.Objects {
		if o.Kind == "Machine" {
			about.Machines = append(about.Machines, o.Name)
		}
	}
	slices.Sort(about.Machines) // some events store their objects in a map
	s.known[e.Aggregate] = about
	return about
}

func (s *Subjects) remediation(e Event) subject {
	event, err := s.remediations.Decode(e.Event)
	state, told := s.owners[e.Aggregate]
	if _, first := event.(remediator.Registered); first && !told {
		state = &remediator.State{}
	}
	s.owners[e.Aggregate] = state
	if state == nil { // the machine is known only if this event names it
		state = &remediator.State{}
	}
	about := subject{}
	if err == nil {
		if machine := remediator.SubjectOf(state, event).Name; machine != "" {
			about.Machines = []string{machine}
		}
		state.Apply(event, e.Time)
	}
	if state.Owner.Cluster != "" {
		about.Clusters = []string{state.Owner.Cluster}
	}
	return about
}
