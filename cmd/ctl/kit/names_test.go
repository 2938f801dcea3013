package kit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNames checks that events can be selected by each name in the source of a Describe function,
// and by no other names but those of the types.
func TestNames(t *testing.T) {
	names, want := factNames(), make(map[string]bool)
	var files []string
	for _, pattern := range []string{"*/describe.go", "*/*/describe.go", "*/*/events.go"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`Line\{\s*Name: +"([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			want[match[1]] = true
		}
	}
	if len(want) < 30 {
		t.Fatalf("found %d names in the sources %v", len(want), files)
	}
	for name := range want {
		if !names[name] {
			t.Errorf("events cannot be selected by the name %q", name)
		}
	}
	for eventType := range EventTypes() { // the default name of a line
		parts := strings.Split(eventType, ".")
		want[strings.ReplaceAll(parts[len(parts)-2], "-", " ")] = true
	}
	for name := range names {
		if !want[name] {
			t.Errorf("no event has the name %q", name)
		}
	}
}
