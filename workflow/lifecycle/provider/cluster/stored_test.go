package cluster

import (
	"testing"

	"scute.dev/internal/pinned"
)

// TestStored holds what steps note in the log to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{"cluster": found{}, "deletion": deleting{}})
}
