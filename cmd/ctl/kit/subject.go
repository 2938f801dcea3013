package kit

import (
	"slices"

	"scute.dev/backup/schedule"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/remediator"
)

// Subject lists the clusters and machines that an event is about.
type Subject struct {
	// Clusters and Machines are names.
	Clusters, Machines []string
	// AnyCluster means that the event is about all clusters of a namespace, and that the log does not name them yet.
	AnyCluster bool
}

// Subjects determines what events are about. It must receive all events of an aggregate from the first one on, because most events do not repeat what
// earlier ones contain. Without the first events its results are incomplete.
type Subjects struct {
	moves        *eventlog.Catalog[mover.Event]
	remediations *eventlog.Catalog[remediator.Event]
	pauses       *eventlog.Catalog[request.Event]
	schedules    *eventlog.Catalog[schedule.Event]

	clusters    map[eventlog.Aggregate][]string
	allClusters map[eventlog.Aggregate]bool              // moves and backups of all clusters of a namespace
	owners      map[eventlog.Aggregate]*remediator.State // nil if the first events of the owner are unknown
}

// NewSubjects returns Subjects that have received no event.
func NewSubjects() *Subjects {
	return &Subjects{
		moves: mover.NewCatalog(), remediations: remediator.NewCatalog(), pauses: request.NewCatalog(), schedules: schedule.NewCatalog(),
		clusters: make(map[eventlog.Aggregate][]string), allClusters: make(map[eventlog.Aggregate]bool), owners: make(map[eventlog.Aggregate]*remediator.State),
	}
}

// Name adds the machine to the fact of a remediation's event if the event's data omit it, as in succeeded.
func (s Subject) Name(e show.Event) show.Event {
	if e.Aggregate.Kind == eventlog.KindRemediation && e.Line.About == "" && len(s.Machines) == 1 {
		e.Line.About = s.Machines[0]
	}
	return e
}

// Of reads the next event and returns its subject. If the event cannot be decoded, it returns the subject of the earlier events.
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
		s.clusters[e.Aggregate], s.allClusters[e.Aggregate] = event.Spec.Clusters, event.Spec.All
	case mover.PreflightPassed:
		s.clusters[e.Aggregate] = event.Clusters
	}
	clusters := s.clusters[e.Aggregate]
	return Subject{Clusters: clusters, AnyCluster: s.allClusters[e.Aggregate] && len(clusters) == 0, Machines: machines(e)}
}

// pause returns the Clusters that are named, and the Clusters that labels have selected so far.
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

// schedule returns the Clusters of the last backup, or the named ones before the first backup.
func (s *Subjects) schedule(e show.Event) Subject {
	event, _ := s.schedules.Decode(e.Event)
	switch event := event.(type) {
	case schedule.Configured:
		s.clusters[e.Aggregate], s.allClusters[e.Aggregate] = event.Spec.Clusters, event.Spec.All
	case schedule.Completed:
		if len(event.Clusters) > 0 {
			s.clusters[e.Aggregate] = event.Clusters
		}
	}
	clusters := s.clusters[e.Aggregate]
	return Subject{Clusters: clusters, AnyCluster: s.allClusters[e.Aggregate] && len(clusters) == 0}
}

func machines(e show.Event) (names []string) {
	for _, o := range e.Line.Objects {
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
	if state == nil { // the first events are unknown, so the machine is known only if this event names it
		state = &remediator.State{}
	}
	about := Subject{}
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
