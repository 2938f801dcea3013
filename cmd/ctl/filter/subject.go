package filter

import (
	"slices"

	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/schedule"
	"scute.dev/pause/request"
	"scute.dev/remediator"
)

// Subject is what an event is about, beside its aggregate.
type Subject struct {
	// Clusters and Machines by their names.
	Clusters, Machines []string
	// AnyCluster says that it is about all clusters of a namespace, and that the log does not say yet which ones they are.
	AnyCluster bool
}

// Subjects knows what events are about. It must be told of all events of an aggregate from the first one on, since most of them
// do not repeat what the earlier ones said; of the later ones alone it knows less.
type Subjects struct {
	moves        *eventlog.Catalog[mover.Event]
	remediations *eventlog.Catalog[remediator.Event]
	pauses       *eventlog.Catalog[request.Event]
	schedules    *eventlog.Catalog[schedule.Event]

	clusters map[eventlog.Aggregate][]string
	all      map[eventlog.Aggregate]bool              // moves of all clusters of a namespace
	owners   map[eventlog.Aggregate]*remediator.State // nil of one whose first events are not known
}

// NewSubjects knows of no event.
func NewSubjects() *Subjects {
	return &Subjects{
		moves: mover.NewCatalog(), remediations: remediator.NewCatalog(), pauses: request.NewCatalog(), schedules: schedule.NewCatalog(),
		clusters: make(map[eventlog.Aggregate][]string), all: make(map[eventlog.Aggregate]bool), owners: make(map[eventlog.Aggregate]*remediator.State),
	}
}

// Name is an event whose fact names the machine that its remediation is of, where its data does not: that one succeeded, for example.
func (s Subject) Name(e show.Event) show.Event {
	if e.Aggregate.Kind == eventlog.KindRemediation && e.Fact.Task == "" && len(s.Machines) == 1 {
		e.Fact.Task = s.Machines[0]
	}
	return e
}

// Of takes the next event, and says what it is about. Of an event that cannot be read it says what the earlier ones said.
func (s *Subjects) Of(e show.Event) Subject {
	switch e.Aggregate.Kind {
	case eventlog.KindMove:
		return s.move(e)
	case eventlog.KindRemediation:
		return s.remediation(e)
	case eventlog.KindPause:
		return s.pause(e)
	case eventlog.KindBackup:
		return s.schedule(e)
	default:
		return Subject{}
	}
}

func (s *Subjects) move(e show.Event) Subject {
	event, _ := s.moves.Decode(e.Event)
	switch event := event.(type) {
	case mover.Requested:
		s.clusters[e.Aggregate], s.all[e.Aggregate] = event.Spec.Clusters, event.Spec.All
	case mover.PreflightPassed:
		s.clusters[e.Aggregate] = event.Clusters
	}
	clusters := s.clusters[e.Aggregate]
	return Subject{Clusters: clusters, AnyCluster: s.all[e.Aggregate] && len(clusters) == 0, Machines: machines(e)}
}

// pause is about the Clusters that are named, and those that the labels have selected so far.
func (s *Subjects) pause(e show.Event) Subject {
	event, _ := s.pauses.Decode(e.Event)
	clusters := s.clusters[e.Aggregate]
	switch event := event.(type) {
	case request.Requested:
		clusters = slices.Clone(event.Spec.Clusters)
	case request.Intended:
		for _, root := range event.Roots {
			clusters = append(clusters[:len(clusters):len(clusters)], root.Ref.Name)
		}
	}
	slices.Sort(clusters)
	s.clusters[e.Aggregate] = slices.Compact(clusters)
	return Subject{Clusters: s.clusters[e.Aggregate], Machines: machines(e)}
}

// schedule is about the Clusters that are named, or those of the last backup.
func (s *Subjects) schedule(e show.Event) Subject {
	event, _ := s.schedules.Decode(e.Event)
	switch event := event.(type) {
	case schedule.Configured:
		s.clusters[e.Aggregate], s.all[e.Aggregate] = event.Spec.Clusters, event.Spec.All
	case schedule.Completed:
		if len(event.Clusters) > 0 {
			s.clusters[e.Aggregate] = event.Clusters
		}
	}
	clusters := s.clusters[e.Aggregate]
	return Subject{Clusters: clusters, AnyCluster: s.all[e.Aggregate] && len(clusters) == 0}
}

func machines(e show.Event) (names []string) {
	for _, o := range e.Fact.Objects {
		if o.Kind == "Machine" {
			names = append(names, o.Name)
		}
	}
	return names
}

func (s *Subjects) remediation(e show.Event) Subject {
	event, err := s.remediations.Decode(e.Event)
	state, told := s.owners[e.Aggregate]
	if _, first := event.(remediator.Registered); first && !told {
		state = &remediator.State{}
	}
	s.owners[e.Aggregate] = state
	if state == nil { // it was not told of the first events: which machine this one is about it says only where the event has it
		state = &remediator.State{}
	}
	about := Subject{}
	if err == nil {
		if machine := remediator.About(state, event).Name; machine != "" {
			about.Machines = []string{machine}
		}
		state.Apply(event, e.Time)
	}
	if state.Owner.Cluster != "" {
		about.Clusters = []string{state.Owner.Cluster}
	}
	return about
}
