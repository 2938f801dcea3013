package trust

import "scute.dev/eventlog"

// Aggregate is what the log says about itself.
func Aggregate() eventlog.Aggregate { return eventlog.Aggregate{Kind: eventlog.KindDaemon, ID: "log"} }

// Event is a fact about the log as a whole.
type Event interface{ isEvent() }

// Bound: the log belongs to a management cluster from here on.
type Bound struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster string `json:"cluster"`
}

// Reconciled: an operator compared what is open with the world, and lets the log be acted on again.
type Reconciled struct {
	// Cluster that the log belongs to from here on.
	Cluster string `json:"cluster"`
	// Mark of the Lease that the log was held against: it no longer stops this log.
	Mark Mark `json:"mark"`
	// Statuses is the mark of the statuses of scute's resources that the log was held against: no status up to it stops this log.
	Statuses Mark `json:"statuses,omitzero"`
	// Open is each undertaking that was open, in the log or in the cluster, and what becomes of it.
	Open []Outcome `json:"open,omitempty"`
}

// Outcome is what becomes of one undertaking.
type Outcome struct {
	// Name is KIND/ID, as in the log.
	Name string `json:"name"`
	// Log and World are its state in the log and in its resource; "" where it does not exist.
	Log   string `json:"log,omitempty"`
	World string `json:"world,omitempty"`
	// Then is what follows.
	Then string `json:"then"`
}

func (Bound) isEvent()      {}
func (Reconciled) isEvent() {}

// NewCatalog makes the catalog of the log's own events.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindDaemon,
		eventlog.Define[Event, Bound]("bound", 1),
		eventlog.Define[Event, Reconciled]("reconciled", 1),
	)
}
