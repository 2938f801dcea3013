package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Key returns the idempotency key. All attempts of a step have the same key. Its undo and other
// steps have different keys. They never change, because Jobs, Moves and external servers identify
// the work of a run by them.
func (c *Call) Key() string {
	if c.Undoing {
		return c.StepKey() + ":undo"
	}
	return c.StepKey()
}

// RequestKey returns the Key for a request to an external server. A handler that runs again,
// because its task failed again later, gets a different key.
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

// StepKey returns the key of the step, which is the same for performing and undoing it. The objects
// that the step created carry it.
func (c *Call) StepKey() string {
	key := c.RunKey() + "/" + keyPart(c.Task)
	if c.Step != "" {
		key += "@" + keyPart(c.Step)
	}
	return key
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
