package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"testing"
)

// TestVendored checks that vendored files equal those of the npm package htmx.org 4.0.1. For an upgrade, update the
// checksums from `npm pack htmx.org`: dist/htmx.min.js, dist/ext/hx-sse.min.js and LICENSE.
func TestVendored(t *testing.T) {
	ours := []string{"clock.js", "icon.svg", "style.css"}
	sums := map[string]string{
		"LICENSE.htmx":  "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
		"htmx.min.js":   "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
		"hx-sse.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
	}
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(sums)
	for _, e := range entries {
		if slices.Contains(ours, e.Name()) {
			continue
		}
		data, err := fs.ReadFile(files, "static/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != sums[e.Name()] {
			t.Errorf("%s: checksum = %s, want %q", e.Name(), got, sums[e.Name()])
		}
		delete(left, e.Name())
	}
	for name := range left {
		t.Errorf("%s is missing", name)
	}
}
