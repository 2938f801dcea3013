package main

import (
	"os"
	"strings"
	"testing"

	"scute.dev/workflow/tasks"
)

func TestFill(t *testing.T) {
	kinds := []tasks.Registration{{Name: "B", Description: "does b", Inverse: "none"}, {Name: "A", Description: "does a", Inverse: "undoes a"}, {Name: "C"}}
	const mark = "// Kind: "
	got, err := fill([]byte("a\n\t// Kind: Old.\n\t// +required\n"), mark, "\n", list(kinds))
	if want := "a\n\t// Kind: A, B or C.\n\t// +required\n"; err != nil || string(got) != want {
		t.Errorf("fill = %q, %v", got, err)
	}
	got, err = fill([]byte("|---|\n| old |\n\nafter\n\n"), "|---|\n", "\n\n", table(kinds[:2]))
	if want := "|---|\n| [B](#b) | does b | none |\n| [A](#a) | does a | undoes a |\n\nafter\n\n"; err != nil || string(got) != want {
		t.Errorf("fill = %q, %v", got, err)
	}
	for name, content := range map[string]string{"no mark": "a\n", "two marks": "// Kind: a\n// Kind: b\n", "no end": "// Kind: a"} {
		if _, err := fill([]byte(content), mark, "\n", "text"); err == nil {
			t.Errorf("fill with %s succeeded, want an error", name)
		}
	}
}

// TestEveryKindIsDocumented checks that the registration of each kind is complete and that docs/kinds.md has a section
// for it.
func TestEveryKindIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range tasks.All() {
		if !strings.Contains(string(text), "\n## "+kind.Name+"\n") {
			t.Errorf("docs/kinds.md has no section %s", kind.Name)
		}
		if kind.Description == "" || kind.Inverse == "" || kind.New == nil || kind.Inputs == nil {
			t.Errorf("the registration of %s is incomplete", kind.Name)
		}
	}
}
