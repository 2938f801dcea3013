package trust

import (
	"fmt"
	"slices"
	"time"
)

// Mark is the high-water mark, kept outside the log: which log acted last, and the highest sequence that it acknowledged.
type Mark struct {
	LogID    string `json:"logID,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
}

// State is what the log says about itself.
type State struct {
	// Cluster that the log belongs to; "" while it belongs to none.
	Cluster string
	// Accepted are the marks that an operator reconciled the log with.
	Accepted []Mark
}

// Apply folds an event in.
func (s *State) Apply(e Event, _ time.Time) {
	switch e := e.(type) {
	case Bound:
		s.Cluster = e.Cluster
	case Reconciled:
		s.Cluster = e.Cluster
		s.Accepted = append(s.Accepted, e.Mark)
	}
}

// Identity is the log as it is, and where it is to be acted on.
type Identity struct {
	LogID string
	Head  uint64
	// Cluster is the UID of the namespace kube-system.
	Cluster string
}

// Reason is why a log may not be acted on: a word in CamelCase.
type Reason string

// The reasons.
const (
	WentBack       Reason = "LogWentBack"
	Replaced       Reason = "LogReplaced"
	AnotherCluster Reason = "LogOfAnotherCluster"
)

// Fault is why a log may not be acted on, and what to do.
type Fault struct {
	Reason        Reason
	Message, Next string
}

const compare = "if it cannot be restored, `scutectl log reconcile` shows what is open and what becomes of it, and records your decision"

// Judge says whether a log may be acted on: nil, or why not. mark is what was kept outside of it; the zero Mark is none.
func Judge(s *State, log Identity, mark Mark) *Fault {
	switch {
	case s.Cluster != "" && s.Cluster != log.Cluster:
		return &Fault{
			AnotherCluster,
			fmt.Sprintf("event log %s belongs to the management cluster with the ID %s, and this one has the ID %s: nothing is driven here", log.LogID, s.Cluster, log.Cluster),
			"give each management cluster a log of its own (an account of its own on the NATS server, another server, or an embedded log); if the other cluster is gone and this one takes its place, `scutectl log reconcile`",
		}
	case mark.LogID == "" || slices.Contains(s.Accepted, mark):
		return nil
	case mark.LogID != log.LogID:
		return &Fault{
			Replaced,
			fmt.Sprintf("event log %s acted here last, up to commit %d, and this is event log %s, which ends at %d: nothing is driven", mark.LogID, mark.Sequence, log.LogID, log.Head),
			"bring the other log back; " + compare,
		}
	case mark.Sequence > log.Head:
		return &Fault{
			WentBack,
			fmt.Sprintf("event log %s acknowledged %d commits and ends at %d now: it went back, because an older copy of its volume was restored or its end was lost; nothing is driven", log.LogID, mark.Sequence, log.Head),
			"restore the newest copy of the log; " + compare,
		}
	}
	return nil
}

// String is the fault in a line.
func (f *Fault) String() string { return fmt.Sprintf("%s: %s; %s", f.Reason, f.Message, f.Next) }
