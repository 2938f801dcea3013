package page

// tone is the meaning of a state's word for the reader, shown as a sign and a color, never as a color alone.
type tone struct {
	// Class is a class of the style sheet: ok, bad, warn, busy or idle.
	Class string
	Sign  string
}

// toneOf returns the tone of a phase (run, task, move, Pause or remediation), of an attempt's outcome, or of a fact.
func toneOf(word string) tone {
	switch word {
	case "Succeeded", "Recovered", "Acknowledged", "succeeded", "verified", "handler done", "step succeeded", "mark cleared", "replacement ready", "all acknowledged",
		"paused", "ready", "thawed", "preflight passed", "Released", "approved":
		return tone{"ok", "✓"}
	case "Failed", "Failing", "Aborted", "RollbackFailed", "UndoFailed", "Stranded", "failed", "aborted", "refused", "not readable", "undo failed", "handler failed",
		"stranded", "log lost", "error":
		return tone{"bad", "✗"}
	case "Frozen", "frozen":
		return tone{"bad", "‖"}
	case "Degraded", "Ignored", "Kept", "attempt failed", "transient failure", "undo attempt failed", "edge expired", "out of time", "lost", "unknown", "marked",
		"extra machine", "surge consumed", "log reconciled":
		return tone{"warn", "!"}
	case "Paused", "PartiallyPaused", "Interrupted", "Waiting", "Held", "Marked", "task paused", "run paused", "interrupted", "asks", "waiting",
		"held", "AwaitingAcks", "Acknowledging", "TimedOut":
		return tone{"warn", "‖"}
	case "RollingBack", "Undoing", "Cancelling", "rollback started", "undo started", "cancel started", "abort requested":
		return tone{"warn", "◀"}
	case "RolledBack", "Undone", "Cancelled", "undone", "rolled back", "cancelled", "hold released":
		return tone{"warn", "↶"}
	case "", "in progress", "Running", "Retrying", "Escalating", "Surging", "Replacing", "Removing", "Preflight", "Pausing", "Planned", "Creating",
		"Verified", "Deleting", "Restoring", "Resuming", "started", "claimed", "handler started":
		return tone{"busy", "▶"}
	default: // Pending, Skipped, Unselected, and all other words
		return tone{"idle", "·"}
	}
}

// chip is a word with its tone.
type chip struct {
	tone
	Word string
}

func newChip[W ~string](word W) chip { return chip{toneOf(string(word)), string(word)} }
