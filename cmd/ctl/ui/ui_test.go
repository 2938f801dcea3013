package ui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
)

// TestThePastIsAReplay checks that the pages at a commit show what `scutectl log replay --at` prints, for every
// aggregate at its beginning, middle or end, requested in any order.
func TestThePastIsAReplay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	uitest.Histories(t, log, "../../..")
	f := uitest.Feed(t)
	uitest.Fill(t, f, log)
	of := make(map[eventlog.Aggregate][]uint64)
	if err := f.Commits.Replay(0, f.Commits.Head(), func(r eventlog.Record) error {
		of[r.Aggregate] = append(of[r.Aggregate], r.Seq)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	names := slices.SortedFunc(maps.Keys(of), func(a, b eventlog.Aggregate) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	for i, a := range names {
		seqs := of[a]
		seq := seqs[[]int{0, len(seqs) / 2, len(seqs) - 1}[i%3]]
		want, got := replayJSON(t, dir, a, seq), snapshotJSON(t, f, a, seq)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s at %d (-replay +page):\n%s", a, seq, diff)
		}
	}
}

// replayJSON returns the output of scutectl log replay.
func replayJSON(t *testing.T, dir string, a eventlog.Aggregate, seq uint64) map[string]any {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Out: &out, Err: &errs, Now: time.Now, Name: "scutectl", Getenv: func(string) string { return "" }, Size: func(any) (int, int, bool) { return 0, 0, false }}
	code := app.Run(t.Context(), env, []string{"log", "replay", "--log", dir, "--aggregate", a.String(), "--at", fmt.Sprint(seq), "-o", "json"})
	if code != 0 {
		t.Fatalf("log replay: %d %s", code, errs.String())
	}
	var all map[string]any
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if !slices.Contains([]string{"run", "move", "pause", "remediations"}, name) {
			delete(all, name)
		}
	}
	return all
}

// snapshotJSON returns what the pages show at the commit, in the same form.
func snapshotJSON(t *testing.T, f *feed.Feed, a eventlog.Aggregate, seq uint64) map[string]any {
	t.Helper()
	said := make(map[string]any)
	err := f.At(seq, func(w *feed.Snapshot) error {
		o, err := feed.Find[feed.Fold](w, a.Kind, a.ID)
		if err != nil {
			return err
		}
		name, object := o.Object()
		said[name] = object
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
