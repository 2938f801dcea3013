package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Key is the idempotency key: the same for all attempts of a step, another one for its undo, and no other step's.
//
// A run keeps the form of its keys to its end: Jobs, Moves and other people's servers know the work of the run by them. In
// the form of runs that were started by an earlier version (OldKeys), a hook and a task can have one key, and an undo has
// the key of what it takes back.
func (c *Call) Key() string {
	if c.Undoing && !c.OldKeys {
		return c.StepKey() + ":undo"
	}
	return c.StepKey()
}

// RequestKey is the Key for who is asked to do something. A handler is called again when its task fails again later, and has another key then.
func (c *Call) RequestKey() string {
	if c.Failure != nil && c.Execution > 1 {
		return c.Key() + ":" + strconv.Itoa(c.Execution)
	}
	return c.Key()
}

// RunKey names the run, in every log: local runs of two folders can have one id.
func (c *Call) RunKey() string {
	if c.Origin == "" {
		return c.Run
	}
	return c.Run + "." + c.Origin
}

// StepKey names the step, whether it is performed or taken back. Objects that it made carry it.
func (c *Call) StepKey() string {
	switch {
	case c.OldKeys && c.Step != "":
		return c.RunKey() + "/" + c.Task + "/" + c.Step
	case c.OldKeys:
		return c.RunKey() + "/" + c.Task
	case c.Step != "":
		return c.RunKey() + "/" + keyPart(c.Task) + "@" + keyPart(c.Step)
	default:
		return c.RunKey() + "/" + keyPart(c.Task)
	}
}

// keyPart escapes what separates the parts of a key. Names of tasks have none of it, names of hooks may.
func keyPart(name string) string {
	return strings.NewReplacer("%", "%25", "@", "%40", ":", "%3A").Replace(name)
}

// Hash is a short form of a key, or of another text, for the names of objects and files.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
