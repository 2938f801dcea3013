package request

import (
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Event represents an event of a pause.
type Event interface{ event() }

// Spec is the specification of a pause, as recorded by Requested.
type Spec struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is the UID of the Pause, which is part of the name of its annotation on the Clusters.
	UID      string   `json:"uid"`
	Clusters []string `json:"clusters,omitempty"`
	// Selector is a label selector as text. BySelector means that it is set, because an empty
	// selector selects all.
	Selector    string                    `json:"selector,omitempty"`
	BySelector  bool                      `json:"bySelector,omitempty"`
	Reason      string                    `json:"reason,omitempty"`
	Acknowledge pause.Duration            `json:"acknowledge"`
	AckKinds    map[string]pause.Duration `json:"acknowledgeKinds,omitempty"`
	Resume      pause.Duration            `json:"resume"`
}

// Ack is the acknowledgement of an object.
type Ack struct {
	How     pause.Signal `json:"how"`
	Cluster string       `json:"cluster,omitempty"`
	// After is the time since the pause was set.
	After pause.Duration `json:"after,omitempty"`
	// BlockMove means that the provider had delayed the acknowledgement with the annotation block-move.
	BlockMove bool `json:"blockMove,omitempty"`
}

// Pending counts the pending objects and lists the first of them.
type Pending struct {
	Objects []pause.PendingObject `json:"objects,omitempty"`
	Total   int                   `json:"total,omitempty"`
	// Clusters and Kinds are counts by Cluster name and by Kind.group.
	Clusters map[string]int `json:"clusters,omitempty"`
	Kinds    map[string]int `json:"kinds,omitempty"`
}

// The events of a pause.
type (
	// Requested records the specification of the pause.
	Requested struct {
		Spec Spec `json:"spec"`
	}
	// Claimed records that a process from now on drives the pause. The next append of any earlier
	// holder fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Intended records that these Clusters are about to be paused, with the pause state to restore
	// at the end. Baseline is the state of their objects just before the pause.
	Intended struct {
		Roots    []pause.Root                  `json:"roots"`
		Baseline map[object.Ref]pause.Baseline `json:"baseline,omitempty"`
		// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set, by Kind.group.
		AckKinds map[string]pause.Duration `json:"acknowledgeKinds,omitempty"`
	}
	// Paused records that the pause is set on these Clusters.
	Paused struct {
		Roots []object.Ref `json:"roots"`
	}
	// Acknowledged records which objects have acknowledged the pause, and how.
	Acknowledged struct {
		Objects map[object.Ref]Ack `json:"objects"`
	}
	// Withdrawn records why acknowledgements are no longer valid, for example because the object was deleted.
	Withdrawn struct {
		Objects map[object.Ref]string `json:"objects"`
	}
	// Waiting records that the pending objects have changed. It is empty if no object is pending.
	Waiting struct {
		Pending
	}
	// AllAcknowledged records that every object has acknowledged the pause.
	AllAcknowledged struct {
		Objects int `json:"objects"`
	}
	// TimedOut records that these objects did not acknowledge in time. Their evaluation continues.
	TimedOut struct {
		Objects []pause.PendingObject `json:"objects"`
		Total   int                   `json:"total"`
	}
	// Dropped records that these Clusters were deleted, or replaced by others with the same name.
	// They are not restored.
	Dropped struct {
		Roots []object.Ref `json:"roots"`
	}
	// TransientFailure records that an action failed and is retried. An empty message means that
	// the failure is over.
	TransientFailure struct {
		Message string `json:"message,omitempty"`
		Next    string `json:"next,omitempty"`
	}
	// ReleaseRequested records that the pause must end.
	ReleaseRequested struct {
		Reason string `json:"reason,omitempty"`
	}
	// Restored records that every Cluster has its earlier pause state or is still paused by another holder.
	Restored struct{}
	// Released ends a pause. StillPaused contains the first of Total objects whose controllers did
	// not resume in time.
	Released struct {
		StillPaused []pause.PendingObject `json:"stillPaused,omitempty"`
		Total       int                   `json:"total,omitempty"`
	}
)

func (Requested) event()        {}
func (Claimed) event()          {}
func (Intended) event()         {}
func (Paused) event()           {}
func (Acknowledged) event()     {}
func (Withdrawn) event()        {}
func (Waiting) event()          {}
func (AllAcknowledged) event()  {}
func (TimedOut) event()         {}
func (Dropped) event()          {}
func (TransientFailure) event() {}
func (ReleaseRequested) event() {}
func (Restored) event()         {}
func (Released) event()         {}

// NewCatalog returns the catalog of the events of a pause.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindPause,
		eventlog.Define[Event, Requested]("requested", 1),
		eventlog.Define[Event, Claimed]("claimed", 1),
		eventlog.Define[Event, Intended]("intended", 1),
		eventlog.Define[Event, Paused]("paused", 1),
		eventlog.Define[Event, Acknowledged]("acknowledged", 1),
		eventlog.Define[Event, Withdrawn]("withdrawn", 1),
		eventlog.Define[Event, Waiting]("waiting", 1),
		eventlog.Define[Event, AllAcknowledged]("all-acknowledged", 1),
		eventlog.Define[Event, TimedOut]("timed-out", 1),
		eventlog.Define[Event, Dropped]("dropped", 1),
		eventlog.Define[Event, TransientFailure]("transient-failure", 1),
		eventlog.Define[Event, ReleaseRequested]("release-requested", 1),
		eventlog.Define[Event, Restored]("restored", 1),
		eventlog.Define[Event, Released]("released", 1),
	)
}
