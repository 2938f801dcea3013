package seal

import (
	"crypto/sha256"
	"testing"
	"time"

	"scute.dev/eventlog"
)

// TestAHasherDependsOnNoEarlierMessage checks that the hasher's cache of the last header does not change hashes.
func TestAHasherDependsOnNoEarlierMessage(t *testing.T) {
	var h Hasher
	for i, header := range []map[string][]string{
		{"b": {"1"}, "a": {"2"}},
		{"a": {"2"}, "b": {"1", "3"}},
		{"a": {"2"}, "c": {"1"}}, // as many
		{"a": {"2"}, "b": {"1"}, "c": {"1"}},
		{"c": {}},
		nil,
		{"": {""}},
		{"a": {"2"}, "b": {"1"}},
	} {
		m := eventlog.NewRecord(uint64(i+1), time.Time{}, "s", header, []byte("d")) //nolint:gosec // not negative
		leaf := AppendLeaf([]byte{leafPrefix}, m)
		if got, want := h.Hash(m), sha256.Sum256(leaf); got != want {
			t.Errorf("header %v: hash %x, want %x", header, got, want)
		}
		if read, err := ParseLeaf(leaf[1:]); err != nil || len(read.Header()) > len(header) {
			t.Errorf("header %v: ParseLeaf = %v, error %v", header, read.Header(), err)
		}
	}
}
