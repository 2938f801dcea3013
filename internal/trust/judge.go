package trust

import (
	"fmt"
	"slices"
	"time"
)

// Watermark is a high-water mark, stored outside of the log: the log that was used last, and the
// highest sequence that it acknowledged.
type Watermark struct {
	LogID    string `json:"logID,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
}

// Watermarks contains all high-water marks outside of the log. A zero Watermark means that there is
// none.
type Watermarks struct {
	// Lease is the mark in the Lease, of the log that was used last.
	Lease Watermark
	// Statuses is the highest sequence in the statuses of scute's resources that name the checked log.
	Statuses Watermark
	// Reconciled is when an operator last reconciled the log that was used last, or "".
	Reconciled string
}

// State is the state of the log's own aggregate.
type State struct {
	// Cluster is the cluster to which the log is bound, or "".
	Cluster string
	// Accepted are the high-water marks at which an operator reconciled the log.
	Accepted []Watermark
	// Reconciled are the times of these reconciliations.
	Reconciled []string
	// UnreadableReason is why later events about the log cannot be read, or "".
	UnreadableReason string
}

// LastReconciled returns when an operator last reconciled the log, or "".
func (s *State) LastReconciled() string {
	if len(s.Reconciled) == 0 {
		return ""
	}
	return s.Reconciled[len(s.Reconciled)-1]
}

// Apply applies an event.
func (s *State) Apply(e Event, at time.Time) {
	switch e := e.(type) {
	case Bound:
		s.Cluster = e.Cluster
	case Reconciled:
		s.Cluster = e.Cluster
		s.Reconciled = append(s.Reconciled, at.UTC().Format(time.RFC3339Nano))
		s.Accepted = append(s.Accepted, e.Watermark)
		if e.Statuses != (Watermark{}) {
			s.Accepted = append(s.Accepted, e.Statuses)
		}
	}
}

// covers reports whether an operator accepted the log in spite of a high-water mark as high as m. A
// status whose commit was lost keeps its sequence, because a status is not overwritten if the log
// lacks its object.
func (s *State) covers(m Watermark) bool {
	return slices.ContainsFunc(s.Accepted, func(a Watermark) bool { return a.LogID == m.LogID && a.Sequence >= m.Sequence })
}

// Identity identifies a log, its current head, and the cluster on which it is used.
type Identity struct {
	LogID string
	Head  uint64
	// Cluster is the UID of the namespace kube-system.
	Cluster string
}

// Reason is why a log may not be used, in CamelCase.
type Reason string

// Reasons of a Fault.
const (
	WentBack       Reason = "LogWentBack"
	Replaced       Reason = "LogReplaced"
	AnotherCluster Reason = "LogOfAnotherCluster"
	Newer          Reason = "LogOfNewerVersion"
)

// Fault is why a log may not be used, and what to do.
type Fault struct {
	Reason        Reason
	Message, Next string
}

const reconcileHint = "if it cannot be restored, `scutectl log reconcile` shows what is open and what will happen to it, and records your decision"

// Check returns why a log may not be used, or nil.
func Check(s *State, log Identity, marks Watermarks) *Fault {
	lease, reconciled := marks.Lease, marks.Reconciled
	// A process that uses a reconciled log can reach exactly the mark that was accepted.
	since := reconciled != "" && reconciled == s.LastReconciled()
	if slices.Contains(s.Accepted, lease) && !since {
		lease, reconciled = Watermark{}, ""
	}
	switch {
	case s.UnreadableReason != "":
		return &Fault{
			Newer,
			fmt.Sprintf("event log %s contains an event about itself that this version of scute cannot read: %s: nothing is driven", log.LogID, s.UnreadableReason),
			"run the version of scute that wrote this event, or a newer one",
		}
	case s.Cluster != "" && s.Cluster != log.Cluster:
		return &Fault{
			AnotherCluster,
			fmt.Sprintf("event log %s belongs to the management cluster with the ID %s, but this management cluster has the ID %s: nothing is driven here", log.LogID, s.Cluster, log.Cluster),
			"give each management cluster its own log (its own account on the NATS server, another server, or an embedded log); if the other cluster is gone and this one replaces it, run `scutectl log reconcile`",
		}
	case lease.LogID != "" && lease.LogID != log.LogID:
		return &Fault{
			Replaced,
			fmt.Sprintf("event log %s was the last to act here, up to commit %d, but this is event log %s, which ends at %d: nothing is driven", lease.LogID, lease.Sequence, log.LogID, log.Head),
			"restore the other log; " + reconcileHint,
		}
	}
	// A log that lost commits and was reconciled has other commits than a longer, older copy of it.
	if reconciled != "" && !slices.Contains(s.Reconciled, reconciled) {
		return &Fault{
			WentBack,
			fmt.Sprintf("event log %s was reconciled at %s before it last acted, but this copy of it, which ends at %d, was not: it lacks later events; nothing is driven", log.LogID, reconciled, log.Head),
			"restore the copy that acted last; " + reconcileHint,
		}
	}
	acknowledged := lease.Sequence
	if m := marks.Statuses; m.LogID == log.LogID && !s.covers(m) {
		acknowledged = max(acknowledged, m.Sequence)
	}
	if acknowledged <= log.Head {
		return nil
	}
	return &Fault{
		WentBack,
		fmt.Sprintf("event log %s went back: it acknowledged %d commits and now ends at %d, because an older copy of its volume was restored or its end was lost; nothing is driven", log.LogID, acknowledged, log.Head),
		"restore the newest copy of the log; " + reconcileHint,
	}
}

func (f *Fault) String() string { return fmt.Sprintf("%s: %s; %s", f.Reason, f.Message, f.Next) }
