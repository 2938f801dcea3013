// Package golden compares the output of tests with files.
//
// What never may live here: anything that a program imports.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/cmd/ctl/term"
)

// Lines compares lines with testdata/NAME.golden; UPDATE=1 writes it. On a terminal no line is wider than it.
func Lines(t testing.TB, name string, width int, lines []string) {
	t.Helper()
	for _, line := range lines {
		if width > 0 && term.Width(line) > width {
			t.Errorf("%d columns, the terminal has %d: %q", term.Width(line), width, line)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
