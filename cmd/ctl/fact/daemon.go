package fact

import (
	"fmt"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
)

// daemon says what the log says about itself.
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
		return Fact{What: fmt.Sprintf("%T", e)}
	}
}

// epoch says where an epoch of the log ends and the next one begins.
func epoch(e eventlog.EpochEvent) Fact {
	switch e := e.(type) {
	case eventlog.EpochClosed:
		return Fact{What: "epoch closed", Detail: join(fmt.Sprintf("epoch %d, stream %s; the log continues in %s", e.Epoch, e.Stream, e.Next), e.Reason)}
	case eventlog.EpochOpened:
		return Fact{What: "epoch opened", Detail: fmt.Sprintf("epoch %d, stream %s; the one before, %s, ends with commit %d", e.Epoch, e.Stream, e.Previous, e.Last)}
	case eventlog.CloseRequested:
		return Fact{What: "epoch closing requested", Detail: join(fmt.Sprintf("epoch %d", e.Epoch), e.Reason)}
	case eventlog.EpochsDropped:
		return Fact{What: "epochs dropped", Detail: join(fmt.Sprintf("epochs 1 to %d; the log is whole from commit %d on; the archive ends with commit %d", e.Through, e.Floor, e.Archive.Last), e.Reason)}
	case eventlog.DropAbandoned:
		return Fact{What: "epochs not dropped", Detail: "a drop ended before it was decided"}
	case eventlog.CloseRefused:
		return Fact{What: "epoch closing refused", Detail: join(fmt.Sprintf("epoch %d", e.Epoch), e.Message)}
	default:
		return Fact{What: fmt.Sprintf("%T", e)}
	}
}
