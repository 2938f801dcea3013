package trust

import (
	"fmt"

	"scute.dev/view"
)

// Describe returns an event of the daemon about its log in words.
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
