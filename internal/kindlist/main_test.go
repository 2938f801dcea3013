package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"scute.dev/workflow/tasks"
)

func TestFill(t *testing.T) {
	got, err := fill([]byte("a\n\t// Kind of the task: Old.\n\t// +required\n"), []string{"A", "B", "C"})
	if want := "a\n\t// Kind of the task: A, B or C.\n\t// +required\n"; err != nil || string(got) != want {
		t.Errorf("%q %v", got, err)
	}
	if _, err := fill([]byte("a\n"), []string{"A", "B"}); err == nil {
		t.Error("a file without the mark was written")
	}
}

// TestEveryKindIsDocumented: each kind of the registry has a row in the table of docs/kinds.md and a section below it.
func TestEveryKindIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(tasks.Kinds(tasks.Options{}))) {
		for _, want := range []string{"\n| [" + kind + "](#" + strings.ToLower(kind) + ") |", "\n## " + kind + "\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("docs/kinds.md has no %q", want)
			}
		}
	}
}
