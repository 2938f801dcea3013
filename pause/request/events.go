package request

import (
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Event is one fact about a pause.
type Event interface{ event() }

// Spec is what was asked for, pinned in the log by Requested.
type Spec struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID of the resource, which the marks on the Clusters have.
	UID      string   `json:"uid"`
	Clusters []string `json:"clusters,omitempty"`
	// Selector is a label selector in its text form. BySelector says that there is one: an empty one selects all.
	Selector    string                    `json:"selector,omitempty"`
	BySelector  bool                      `json:"bySelector,omitempty"`
	Reason      string                    `json:"reason,omitempty"`
	Acknowledge pause.Duration            `json:"acknowledge"`
	AckKinds    map[string]pause.Duration `json:"acknowledgeKinds,omitempty"`
	Awake       pause.Duration            `json:"awake"`
}

// Ack is how an object acknowledged.
type Ack struct {
	How pause.Signal `json:"how"`
	// Cluster is the name of the Cluster that it belongs to.
	Cluster string `json:"cluster,omitempty"`
	// After is the time since the pause was set.
	After pause.Duration `json:"after,omitempty"`
	// BlockMove: its provider held it with the annotation block-move before.
	BlockMove bool `json:"blockMove,omitempty"`
}

// Pending counts what is waited for, and names the first of it.
type Pending struct {
	For   []pause.Wait `json:"for,omitempty"`
	Total int          `json:"total,omitempty"`
	// Clusters and Kinds count it by the name of the Cluster, and by Kind.group.
	Clusters map[string]int `json:"clusters,omitempty"`
	Kinds    map[string]int `json:"kinds,omitempty"`
}

// The facts of a pause.
type (
	// Requested pins what was asked for.
	Requested struct {
		Spec Spec `json:"spec"`
	}
	// Claimed fences off every earlier holder: their next append fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Intended: these Clusters are about to be paused; the state found on them is what they get back in the end. Baseline is what
	// objects below them said of being paused just before.
	Intended struct {
		Roots    []pause.Root                  `json:"roots"`
		Baseline map[object.Ref]pause.Baseline `json:"baseline,omitempty"`
		// AckKinds are the times that definitions give objects of their kinds to acknowledge, by Kind.group.
		AckKinds map[string]pause.Duration `json:"acknowledgeKinds,omitempty"`
	}
	// Paused: the pause is set on these Clusters.
	Paused struct {
		Roots []object.Ref `json:"roots"`
	}
	// Acknowledged: these objects are at rest, and how they said so.
	Acknowledged struct {
		Objects map[object.Ref]Ack `json:"objects"`
	}
	// Withdrawn: these objects had acknowledged, and it holds no longer; why. Gone objects are among them.
	Withdrawn struct {
		Objects map[object.Ref]string `json:"objects"`
	}
	// Waiting: what is waited for has changed; with nothing, nothing is.
	Waiting struct {
		Pending
	}
	// AllAcknowledged: every object is at rest.
	AllAcknowledged struct {
		Objects int `json:"objects"`
	}
	// TimedOut: these objects did not acknowledge in time. They are still looked at.
	TimedOut struct {
		For   []pause.Wait `json:"for"`
		Total int          `json:"total"`
	}
	// Dropped: these Clusters are gone, or were replaced by others of their name. They are not restored.
	Dropped struct {
		Roots []object.Ref `json:"roots"`
	}
	// TransientFailure: something cannot be done now; it is tried again. With an empty message it has passed.
	TransientFailure struct {
		Message string `json:"message,omitempty"`
		Next    string `json:"next,omitempty"`
	}
	// ReleaseRequested: the pause is to end.
	ReleaseRequested struct {
		Reason string `json:"reason,omitempty"`
	}
	// Restored: every Cluster has the pause state back that was found, or is left to the others that hold it.
	Restored struct{}
	// Released ends a pause. Asleep are objects that have not said in time that they are awake, the first of Total.
	Released struct {
		Asleep []pause.Wait `json:"asleep,omitempty"`
		Total  int          `json:"total,omitempty"`
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

// NewCatalog maps the facts of a pause to their types in the log.
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
		eventlog.Define[Event, TransientFailure]("setback", 1),
		eventlog.Define[Event, ReleaseRequested]("release-requested", 1),
		eventlog.Define[Event, Restored]("restored", 1),
		eventlog.Define[Event, Released]("released", 1),
	)
}
