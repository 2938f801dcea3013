package sequence

import (
	"testing"

	"scute.dev/internal/pinned"
)

// TestStored holds the records of the parts of a step to what they were when they were written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{"parts": record{}})
}
