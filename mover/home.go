package mover

import "fmt"

// Home is where a move is driven from. It is pinned in the log when the move is requested: the same name in another
// management cluster, or in another log, means another move.
type Home struct {
	// Cluster is the UID of namespace kube-system of the management cluster that is the source.
	Cluster string `json:"cluster,omitempty"`
	// Log is the ID of the event log.
	Log string `json:"log,omitempty"`
}

// Foreign says why a move is not to be driven from here, and what to do; empty when it is. A move that an older version
// began has no home and is at home everywhere.
func (h Home) Foreign(s *State) (message, next string) {
	switch {
	case h.Cluster != "" && s.Home.Cluster != "" && h.Cluster != s.Home.Cluster:
		return fmt.Sprintf("stranded: another management cluster began it: namespace kube-system has UID %s there and %s here", s.Home.Cluster, h.Cluster),
			"give this management cluster its own event log, on a shared NATS server its own account; the move continues where it began"
	case h.Log != "" && s.Home.Log != "" && h.Log != s.Home.Log:
		return fmt.Sprintf("stranded: it was begun in event log %s, and this one is %s", s.Home.Log, h.Log),
			"run scute on the log in which the move began"
	default:
		return "", ""
	}
}
