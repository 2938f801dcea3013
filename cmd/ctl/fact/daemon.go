package fact

import (
	"fmt"

	"scute.dev/internal/trust"
)

// daemon describes an event of the daemon about its log.
func daemon(e trust.Event) Fact {
	switch e := e.(type) {
	case trust.Bound:
		return Fact{What: "log bound", Detail: "to the management cluster with the ID " + e.Cluster}
	case trust.Reconciled:
		mark := e.Mark
		if mark.LogID == "" || mark.LogID == e.Statuses.LogID && mark.Sequence < e.Statuses.Sequence {
			mark = e.Statuses
		}
		return Fact{What: "log reconciled", Detail: fmt.Sprintf("with event log %s, commit %d; %d were open", mark.LogID, mark.Sequence, len(e.Open))}
	default:
		return Fact{}
	}
}
