package kit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/cmd/ctl/cli"
)

func TestNewsAndPrintedLinesAreClean(t *testing.T) {
	var out strings.Builder
	p := &Session[int]{Kit: &Kit{Env: &cli.Env{Out: &out, Now: time.Now}}}
	if err := p.lines(&cli.Format{}).write(Key("fleet", "prod"), Update{Part: "task\x1b[2J", Text: "failed:\x1b[31m\nprod is gone"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Print([]string{"one\x1b[2J\ntwo"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("got %q", out.String())
	}
}

// TestABrokenConnectionIsToldOnce checks that an outage is reported once, and again for each minute that it lasts.
func TestABrokenConnectionIsToldOnce(t *testing.T) {
	var out strings.Builder
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	k := &Kit{Env: &cli.Env{Err: &out, Name: "scutectl", Now: func() time.Time { return now }, Size: func(any) (int, int, bool) { return 0, 0, false }}}
	for range 140 { // 70 seconds
		k.ReportBroken(errors.New("connection refused"))
		now = now.Add(500 * time.Millisecond)
	}
	now = now.Add(time.Hour)
	k.ReportBroken(errors.New("connection refused"))
	want := `scutectl: 2026-07-30T12:00:00.000Z the connection is lost, retrying: connection refused
scutectl: 2026-07-30T12:01:00.000Z the connection is lost, retrying: connection refused
scutectl: 2026-07-30T13:01:10.000Z the connection is lost, retrying: connection refused
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
