package eventlog

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

// typeEpochClosed is the type of EpochClosed.
const typeEpochClosed = typePrefix + string(KindDaemon) + ".epoch-closed.v1"

// NewEpochCatalog makes the catalog of the events about epochs.
func NewEpochCatalog() *Catalog[EpochEvent] {
	return NewCatalog(KindDaemon,
		Define[EpochEvent, EpochClosed]("epoch-closed", 1),
		Define[EpochEvent, EpochOpened]("epoch-opened", 1),
		Define[EpochEvent, CloseRequested]("epoch-close-requested", 1),
		Define[EpochEvent, CloseRefused]("epoch-close-refused", 1),
	)
}

// closes says that a commit is one that ends an epoch.
func (r Record) closes() bool {
	return r.Aggregate == epochs() && first(r.header, "ce-type") == typeEpochClosed
}
