package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
)

// TestExamples runs every manifest in docs/examples, and checks that it causes no warnings and that its exit status is
// the documented one.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d examples, error %v", len(files), err)
	}
	says := regexp.MustCompile(`(?m)^# Exit status:  (\d+)$`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := says.FindSubmatch(data)
			if m == nil {
				t.Fatal("the exit status is not documented")
			}
			want, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			var out, notes bytes.Buffer
			env := cli.System("scutectl", "test")
			env.In, env.Out, env.Err = bytes.NewReader(data), &out, &notes
			env.Size = func(any) (int, int, bool) { return 0, 0, false }
			if got := app.Run(context.Background(), env, []string{"run", "-f", "-", "--local"}); got != want {
				t.Errorf("got exit status %d, want %d:\n%s%s", got, want, out.String(), notes.String())
			}
			if strings.Contains(notes.String(), "warning: ") {
				t.Errorf("got warnings:\n%s", notes.String())
			}
		})
	}
}

// TestTerminal checks that a run is redrawn in place on a terminal, within its width.
func TestTerminal(t *testing.T) {
	data, err := os.ReadFile("../../docs/examples/07-alternative.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var out, notes bytes.Buffer
	env := cli.System("scutectl", "test")
	env.In, env.Out, env.Err = bytes.NewReader(data), &out, &notes
	env.Size = func(any) (int, int, bool) { return 70, 40, true }
	env.Getenv = func(name string) string { return map[string]string{"TERM": "xterm", "NO_COLOR": "1"}[name] }
	if got := app.Run(context.Background(), env, []string{"run", "-f", "-", "--local"}); got != 0 {
		t.Fatalf("got exit status %d\n%s", got, notes.String())
	}
	for _, want := range []string{"default/alternative", "✗ fast", "· use-fast", "✓ join", "Succeeded", "2/4, 1 failed", "\x1b[J"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for line := range bytes.Lines(out.Bytes()) {
		if w := len([]rune(string(regexp.MustCompile(`\x1b\[[0-9]*[AJKm]|\r|\n`).ReplaceAll(line, nil)))); w > 70 {
			t.Errorf("line of %d columns, want at most 70: %s", w, line)
		}
	}
}
