package fact_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/schema"
)

// TestNames checks that the names by which events can be selected are those of the facts in this package and of the
// event types.
func TestNames(t *testing.T) {
	names := fact.Names(slices.Collect(maps.Keys(schema.Types())))
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`What: +"([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			told[match[1]] = true
		}
	}
	for what := range told {
		if !names[what] {
			t.Errorf("fact %q is not in Names", what)
		}
	}
	for eventType := range schema.Types() { // a fact without a name has that of its type
		parts := strings.Split(eventType, ".")
		told[strings.ReplaceAll(parts[len(parts)-2], "-", " ")] = true
	}
	for name := range names {
		if !told[name] {
			t.Errorf("name %q belongs to no fact", name)
		}
	}
}
