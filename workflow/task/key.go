package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Key returns the idempotency key. All attempts of a step have the same key. Its undo and other steps have different keys.
//
// A run uses one form of keys until its end, because its Jobs, its Moves and external servers identify its work by them. In the form of runs that
// were started by an earlier version (LegacyKeys), a hook and a task can have the same key, and an undo has the key of its step.
func (c *Call) Key() string {
	if c.Undoing && !c.LegacyKeys {
		return c.StepKey() + ":undo"
	}
	return c.StepKey()
}

// RequestKey returns the Key for a request to an external server. A handler that runs again, because its task failed again later, gets a different
// key.
func (c *Call) RequestKey() string {
	if c.Failure != nil && c.Execution > 1 {
		return c.Key() + ":" + strconv.Itoa(c.Execution)
	}
	return c.Key()
}

// RunKey returns a key of the run that is unique across logs, because local runs in two folders can have the same ID.
func (c *Call) RunKey() string {
	if c.Origin == "" {
		return c.Run
	}
	return c.Run + "." + c.Origin
}

// StepKey returns the key of the step, which is the same for performing and undoing it. The objects that the step created carry it.
func (c *Call) StepKey() string {
	switch {
	case c.LegacyKeys && c.Step != "":
		return c.RunKey() + "/" + c.Task + "/" + c.Step
	case c.LegacyKeys:
		return c.RunKey() + "/" + c.Task
	case c.Step != "":
		return c.RunKey() + "/" + keyPart(c.Task) + "@" + keyPart(c.Step)
	default:
		return c.RunKey() + "/" + keyPart(c.Task)
	}
}

// keyPart escapes the separators of a key. The name of a hook may contain them, the name of a task cannot.
func keyPart(name string) string {
	return strings.NewReplacer("%", "%25", "@", "%40", ":", "%3A").Replace(name)
}

// Hash returns a short hash of a key or of another text, for the names of objects and files.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
