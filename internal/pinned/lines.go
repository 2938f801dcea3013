package pinned

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Lines compares lines of text without colors with testdata/NAME.golden; UPDATE=1 writes it. No
// line may be wider than width columns; 0 means any.
func Lines(t testing.TB, name string, width int, lines []string) {
	t.Helper()
	for _, line := range lines {
		if columns := utf8.RuneCountInString(line); width > 0 && columns > width {
			t.Errorf("%d columns, the terminal has %d: %q", columns, width, line)
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
