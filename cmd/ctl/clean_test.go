package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinesAreCleaned checks that only the listed files print directly, because they clean control sequences or write
// data. All others use Linef, Notef or Print, as text from a status or a backup could control the terminal.
func TestLinesAreCleaned(t *testing.T) {
	prints := regexp.MustCompile(`fmt\.Fprint|io\.WriteString|\bOut\.Write\(`)
	may := map[string]string{
		"cli/env.go": "Linef, Notef and Showf", "kit/kit.go": "Print, and a clean question", "kit/draw.go": "cleans",
		"run/display.go": "cleans", "backup/cmd.go": "cleans", "cli/screen.go": "cleans", "kit/logs.go": "JSON", "audit/prove.go": "a proof, for a file",
	}
	seen := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name := filepath.ToSlash(path); prints.Match(text) {
			if seen[name] = true; may[name] == "" {
				t.Errorf("%s prints directly: use Env.Linef, Env.Notef or Kit.Print", name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range may {
		if !seen[name] {
			t.Errorf("%s no longer prints directly: remove it from the list", name)
		}
	}
}
