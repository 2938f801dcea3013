package provider

import (
	"testing"

	"scute.dev/internal/pinned"
)

// TestStored checks that stored records of steps still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{"parts": record{}, "cluster": clusterRecord{}, "deletion": deletionRecord{}})
}
