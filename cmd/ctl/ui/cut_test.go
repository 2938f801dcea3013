package ui_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
)

// interrupt is a writer that cancels a context at the first write.
type interrupt func()

func (i interrupt) Write(p []byte) (int, error) { i(); return len(p), nil }

// TestACutExportIsTold checks that a truncated export is shown with a warning.
func TestACutExportIsTold(t *testing.T) {
	for last, want := range map[string]bool{"1": false, "7": true, "7 in a line": true} {
		last, inLine := strings.CutSuffix(last, " in a line")
		file := filepath.Join(t.TempDir(), "export.jsonl")
		text := `{"format":"scute.dev/log-export/v1","logID":"d328d5cfc5f10c21","last":` + last + `}
{"seq":1,"stored":"2026-07-30T12:00:00Z","subject":"another.program","data":"aGk="}
`
		if inLine {
			text += `{"seq":2,"stored":"2026-07`
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var errs bytes.Buffer
		env := &cli.Env{
			Out: interrupt(cancel), Err: &errs, Now: time.Now, Name: "scutectl",
			Getenv: func(string) string { return "" }, Size: func(any) (int, int, bool) { return 0, 0, false },
		}
		if code := app.Run(ctx, env, []string{"ui", "--from", file}); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		if got := strings.Contains(errs.String(), "is incomplete: it has the first 1 of 7 commits"); got != want {
			t.Errorf("log of %s commits, export of one: got output %s", last, errs.String())
		}
	}
}
