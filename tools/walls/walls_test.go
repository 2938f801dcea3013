package walls_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wall is a line of testdata/walls.txt.
type wall struct {
	file   string // the importing file, relative to the root of the repository
	target string // an import path, or "uses <pkg>.<Name>"
	never  bool
}

func TestWalls(t *testing.T) {
	walls := readWalls(t, "testdata/walls.txt")
	fixture := newFixture(t, walls)
	rejected := fixture.lint(t)

	want, got := map[string]bool{}, map[string]bool{}
	for _, w := range walls {
		name := w.file + " " + w.target
		want[name] = w.never
		got[name] = rejected[w]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rejected by the linter (-want +got):\n%s", diff)
	}
}

func readWalls(t *testing.T, name string) []wall {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var walls []wall
	for n, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 3 || (fields[0] != "may" && fields[0] != "never") {
			t.Fatalf("%s:%d: want `may|never FILE TARGET`, got %q", name, n+1, line)
		}
		walls = append(walls, wall{
			never: fields[0] == "never", file: fields[1], target: strings.Join(fields[2:], " "),
		})
	}
	return walls
}
