package trust

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"scute.dev/eventlog"
	"scute.dev/view"
)

// Aggregate returns the aggregate of events about the log itself.
func Aggregate() eventlog.Aggregate { return eventlog.Aggregate{Kind: eventlog.KindDaemon, ID: "log"} }

// Event is an event about the log as a whole.
type Event interface{ isEvent() }

// Bound binds the log to a management cluster.
type Bound struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster string `json:"cluster"`
}

// Reconciled records that an operator compared the unfinished objects with the clusters and
// permitted the use of the log again.
type Reconciled struct {
	// Cluster is the cluster to which the log is bound from now on.
	Cluster string `json:"cluster"`
	// Watermark of the Lease at that time. It no longer prevents the use of this log.
	Watermark Watermark `json:"watermark"`
	// Statuses is the high-water mark in the statuses of scute's resources at that time. Statuses
	// up to it no longer prevent the use of this log.
	Statuses Watermark `json:"statuses,omitzero"`
	// Open contains the objects that were unfinished in the log or in the cluster.
	Open []Outcome `json:"open,omitempty"`
}

// Outcome describes what the reconciliation found about one object.
type Outcome struct {
	// Name is KIND/ID, as in the log.
	Name string `json:"name"`
	// Log and Resource are the states of the object in the log and in its resource; "" if it does
	// not exist there.
	Log      string `json:"log,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Next is what happens to the object next.
	Next string `json:"next"`
}

func (Bound) isEvent()      {}
func (Reconciled) isEvent() {}

// NewCatalog returns the event types of the log's own aggregate.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindDaemon,
		eventlog.Define[Event, Bound]("bound", 1),
		eventlog.Define[Event, Reconciled]("reconciled", 1),
	)
}

// Commit returns a commit of one event to the log's own aggregate, whose last commit is at seq.
func Commit(e Event, actor string, seq uint64, now time.Time) (eventlog.Commit, error) {
	ev, err := NewCatalog().Encode(e)
	if err != nil {
		return eventlog.Commit{}, err
	}
	ev.Time, ev.Actor = now.UTC(), actor
	c := eventlog.Commit{Aggregate: Aggregate(), Expected: seq, Events: []eventlog.Event{ev}}
	c.ID = c.IDFor(actor)
	return c, nil
}

// Describe returns a description of an event about the log.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Bound:
		return view.Line{Name: "log bound", Detail: "to the management cluster with the ID " + e.Cluster}
	case Reconciled:
		mark := e.Watermark
		if mark.LogID == "" || mark.LogID == e.Statuses.LogID && mark.Sequence < e.Statuses.Sequence {
			mark = e.Statuses
		}
		return view.Line{Name: "log reconciled", Detail: fmt.Sprintf("with event log %s, commit %d; %d were open", mark.LogID, mark.Sequence, len(e.Open))}
	default:
		return view.Line{}
	}
}

// View is the state of the log's own aggregate. One projector updates it; reads are safe at any
// time.
type View struct {
	catalog *eventlog.Catalog[Event]
	mu      sync.RWMutex
	state   State
	seq     uint64
}

// NewView returns an empty view.
func NewView() *View { return &View{catalog: NewCatalog()} }

// Apply applies a commit. It ignores commits about other aggregates.
func (v *View) Apply(r eventlog.Record) error {
	if r.Aggregate != Aggregate() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq = r.Seq
	err := v.catalog.Fold(r, v.state.Apply)
	if err != nil {
		v.state.UnreadableReason = err.Error()
	}
	return err
}

// State returns a copy of the state, and the sequence of the last commit in it.
func (v *View) State() (State, uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state
	s.Accepted, s.Reconciled = slices.Clone(s.Accepted), slices.Clone(s.Reconciled)
	return s, v.seq
}
