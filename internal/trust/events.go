package trust

import "scute.dev/eventlog"

// Aggregate returns the aggregate of events about the log itself.
func Aggregate() eventlog.Aggregate { return eventlog.Aggregate{Kind: eventlog.KindDaemon, ID: "log"} }

// Event is an event about the log as a whole.
type Event interface{ isEvent() }

// Bound binds the log to a management cluster.
type Bound struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster string `json:"cluster"`
}

// Reconciled records that an operator compared the unfinished objects with the clusters and permitted the use of the log again.
type Reconciled struct {
	// Cluster to which the log is bound from now on.
	Cluster string `json:"cluster"`
	// Watermark of the Lease at the reconciliation. It no longer prevents the use of this log.
	Watermark Watermark `json:"watermark"`
	// Statuses is the mark of the statuses of scute's resources at the reconciliation. Statuses up to this mark no longer prevent the use of this
	// log.
	Statuses Watermark `json:"statuses,omitzero"`
	// Open are the objects that were unfinished in the log or in the cluster, with their outcomes.
	Open []Outcome `json:"open,omitempty"`
}

// Outcome is the outcome of the reconciliation for one object.
type Outcome struct {
	// Name is KIND/ID, as in the log.
	Name string `json:"name"`
	// Log and World are the states of the object in the log and in its resource; "" if it does not exist there.
	Log      string `json:"log,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Next is what happens to the object next.
	Next string `json:"next"`
}

func (Bound) isEvent()      {}
func (Reconciled) isEvent() {}

// NewCatalog returns the catalog of events about the log.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindDaemon,
		eventlog.Define[Event, Bound]("bound", 1),
		eventlog.Define[Event, Reconciled]("reconciled", 1),
	)
}
