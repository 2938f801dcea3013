package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/page"
	"scute.dev/ui/uitest"
)

// TestPrinted checks that the panel of a task shows the end of the output of its last attempts, escaped, only for the
// present, and not of other tasks, and that the ID of a run cannot lead to another folder.
func TestPrinted(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	saved := uitest.SavedHistories(t, root, "rolled-back", "decided-to-retry")
	for _, h := range saved {
		if strings.Contains(h.Aggregate.ID, "decided") {
			h.Aggregate.ID = "../elsewhere"
		}
	}
	uitest.WriteInterleaved(t, log, saved)
	uitest.Fill(t, f, log)
	dir := t.TempDir()
	write := func(name string, at int, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, later(), later().Add(time.Duration(at)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= 9; i++ {
		write(fmt.Sprintf("runs/fleet/rolled-back/1/b-%d.log", i), i, fmt.Sprintf("beginning of %d\n%send of %d\x1b[31m<hostile>", i, strings.Repeat("\xc3\xa4\n", 10_000), i))
	}
	write("runs/fleet/rolled-back/1/a-1.log", 1, "another task")
	write("elsewhere/a-1.log", 1, "another folder")
	flags := connect.New()
	flags.Dir = dir
	s, err := page.New(f, &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: later}, Flags: flags}, dir)
	if err != nil {
		t.Fatal(err)
	}
	const address = "/run?id=fleet/rolled-back/1&task=b"
	got := show(t, s, address)
	for part, want := range map[string]bool{
		"end of 9": true, "end of 6": true, "end of 5": false, "beginning of": false, "with 5 earlier attempts": true, "&lt;hostile&gt;": true, "<hostile>": false, "\x1b": false,
		"another task": false, "logs run": true,
	} {
		if strings.Contains(got, part) != want {
			t.Errorf("the panel contains %q: %t", part, !want)
		}
	}
	if len(got) > 200<<10 {
		t.Errorf("the page has %d bytes, want at most 200 KiB", len(got))
	}
	if past := show(t, s, address+fmt.Sprintf("&at=%d", f.Commits.Head())); strings.Contains(past, "end of") {
		t.Error("a page of the past shows the current output")
	}
	if got := show(t, s, "/run?id=../elsewhere&task=a"); strings.Contains(got, "another folder") {
		t.Error("the ID of a run leads to another folder")
	}
}
