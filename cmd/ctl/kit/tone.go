package kit

import "scute.dev/cmd/ctl/cli"

// Tone classifies a word for the reader: as success, failure, warning, work in progress, or none of
// these. It is shown as a sign and a color, never as a color alone.
type Tone struct {
	// Class is a class of the style sheet: ok, bad, warn, busy or idle.
	Class string
	Sign  string
}

// ToneOf returns the tone of a phase, of an attempt's outcome, or of a fact.
func ToneOf(word string) Tone {
	switch word {
	case "Succeeded", "Recovered", "Acknowledged", "succeeded", "verified", "handler done", "step succeeded", "mark cleared", "replacement ready", "all acknowledged",
		"paused", "ready", "thawed", "preflight passed", "Released", "approved":
		return Tone{"ok", "✓"}
	case "Failed", "Failing", "Aborted", "RollbackFailed", "UndoFailed", "Stranded", "failed", "aborted", "refused", "not readable", "undo failed", "handler failed",
		"stranded", "log lost", "error":
		return Tone{"bad", "✗"}
	case "Frozen", "frozen":
		return Tone{"bad", "‖"}
	case "Degraded", "Ignored", "Kept", "attempt failed", "transient failure", "undo attempt failed", "edge expired", "out of time", "lost", "unknown", "marked",
		"extra machine", "surge consumed", "log reconciled":
		return Tone{"warn", "!"}
	case "Paused", "PartiallyPaused", "Interrupted", "Waiting", "Held", "Marked", "task paused", "run paused", "interrupted", "asks", "waiting",
		"held", "AwaitingAcks", "Acknowledging", "TimedOut":
		return Tone{"warn", "‖"}
	case "RollingBack", "Undoing", "Cancelling", "rollback started", "undo started", "cancel started", "abort requested":
		return Tone{"warn", "◀"}
	case "RolledBack", "Undone", "Cancelled", "undone", "rolled back", "cancelled", "hold released":
		return Tone{"warn", "↶"}
	case "", "in progress", "Running", "Retrying", "Escalating", "Surging", "Replacing", "Removing", "Preflight", "Pausing", "Planned", "Creating",
		"Verified", "Deleting", "Restoring", "Resuming", "started", "claimed", "handler started":
		return Tone{"busy", "▶"}
	default: // Pending, Skipped, Unselected, and all other words
		return Tone{"idle", "·"}
	}
}

// Style returns the color of the tone on a terminal.
func (t Tone) Style() cli.Style {
	return map[string]cli.Style{"ok": cli.Green, "bad": cli.Red, "warn": cli.Yellow, "busy": cli.Cyan, "idle": cli.Dim}[t.Class]
}

// Word returns a word in the color of its tone.
func (v View) Word(word string) string { return v.Paint.Text(ToneOf(word).Style(), word) }
