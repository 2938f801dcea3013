package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Key returns the idempotency key. All attempts of a step share it, but the undo of the step has
// another one. Never change how keys are formed: Jobs, Moves and external servers identify the work
// of a run by these keys.
func (c *Call) Key() string {
	if c.Undoing {
		return c.StepKey() + ":undo"
	}
	return c.StepKey()
}

// RequestKey returns the Key for a request to an external server. A failure handler that runs
// again, because its task failed again later, gets a different key.
func (c *Call) RequestKey() string {
	if c.Failure != nil && c.Execution > 1 {
		return c.Key() + ":" + strconv.Itoa(c.Execution)
	}
	return c.Key()
}

// RunKey returns a key that is unique across logs, because local runs in two folders can have the same ID.
func (c *Call) RunKey() string {
	if c.Origin == "" {
		return c.Run
	}
	return c.Run + "." + c.Origin
}

// StepKey returns the key that a step and its undo share. The step sets it as an annotation on the
// objects that it creates.
func (c *Call) StepKey() string {
	key := c.RunKey() + "/" + keyPart(c.Task)
	if c.Step != "" {
		key += "@" + keyPart(c.Step)
	}
	return key
}

// keyPart escapes the characters that separate the parts of a key. Only names of hooks can contain
// them.
func keyPart(name string) string {
	return strings.NewReplacer("%", "%25", "@", "%40", ":", "%3A").Replace(name)
}

// Hash returns a short hash of a text, for use in names of objects and files.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
