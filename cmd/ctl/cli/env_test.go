package cli_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
)

// TestNoTextControlsTheTerminal checks that control sequences in printed text are removed.
func TestNoTextControlsTheTerminal(t *testing.T) {
	hostile := errors.New("one\x1b]0;title\x07\r\u202e\nnext")
	var said bytes.Buffer
	now := time.Unix(0, 0)
	env := &cli.Env{Err: &said, Now: func() time.Time { return now }, Size: func(any) (int, int, bool) { return 80, 24, true }}
	env.Notef("scutectl: %v", hostile)
	if got, want := said.String(), "scutectl: one ]0;title   \nnext\n"; got != want {
		t.Errorf("Notef printed %q, want %q", got, want)
	}
	said.Reset()
	env.Out = &said
	if err := env.Linef("prod: %v", hostile); err != nil {
		t.Fatal(err)
	}
	if got, want := said.String(), "prod: one ]0;title    next\n"; got != want {
		t.Errorf("Linef printed %q, want %q", got, want)
	}
	said.Reset()
	progress := env.Progress()
	now = now.Add(time.Second)
	progress.Showf("%v", hostile)
	if got, want := said.String(), "\r\x1b[2Kone ]0;title    next"; got != want {
		t.Errorf("Showf printed %q, want %q", got, want)
	}
}
