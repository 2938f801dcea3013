package eventlog

import "time"

// epochs is the aggregate that says where one epoch of the log ends and the next one begins.
func epochs() Aggregate { return Aggregate{Kind: KindDaemon, ID: "epochs"} }

// EpochEvent is a fact about the epochs of the log.
type EpochEvent interface{ isEpochEvent() }

// EpochClosed is the last commit of an epoch.
type EpochClosed struct {
	Epoch  int    `json:"epoch"`
	Stream string `json:"stream"`
	// Next is the stream in which the log continues.
	Next   string `json:"next"`
	Reason string `json:"reason,omitempty"`
}

// EpochOpened is the first commit of an epoch. It names the one before and its end.
type EpochOpened struct {
	Epoch  int    `json:"epoch"`
	Stream string `json:"stream"`
	// Previous is the stream of the epoch before.
	Previous string `json:"previous"`
	// Last is the sequence of the last commit there, and Commit its fingerprint.
	Last   uint64 `json:"last"`
	Commit string `json:"commit"`
}

func (EpochClosed) isEpochEvent() {}
func (EpochOpened) isEpochEvent() {}

// The types of EpochClosed and EpochOpened.
const (
	typeEpochClosed = typePrefix + string(KindDaemon) + ".epoch-closed.v1"
	typeEpochOpened = typePrefix + string(KindDaemon) + ".epoch-opened.v1"
)

// NewEpochCatalog makes the catalog of the events about epochs.
func NewEpochCatalog() *Catalog[EpochEvent] {
	return NewCatalog(KindDaemon,
		Define[EpochEvent, EpochClosed]("epoch-closed", 1),
		Define[EpochEvent, EpochOpened]("epoch-opened", 1),
		Define[EpochEvent, CloseRequested]("epoch-close-requested", 1),
		Define[EpochEvent, CloseRefused]("epoch-close-refused", 1),
		Define[EpochEvent, EpochsDropped]("epochs-dropped", 1),
		Define[EpochEvent, DropAbandoned]("epochs-drop-abandoned", 1),
	)
}

// closes says that a commit is one that ends an epoch.
func (r Record) closes() bool {
	return r.Aggregate == epochs() && first(r.header, "ce-type") == typeEpochClosed
}

// OpensEpoch says that a commit is the first one of an epoch after the first. at is when the closing of the epoch before began, by the
// clock of who closed it or by that of the server, whichever is earlier. It is the same in every copy of the log.
func (r Record) OpensEpoch() (at time.Time, ok bool) {
	if r.Aggregate != epochs() || first(r.header, "ce-type") != typeEpochOpened {
		return time.Time{}, false
	}
	at = r.Stored
	if events, err := r.Events(); err == nil && len(events) > 0 && events[0].Time.Before(at) {
		at = events[0].Time
	}
	return at, true
}
