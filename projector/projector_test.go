package projector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts is a view: how often each aggregate was counted. It cannot follow facts of version 2.
type counts map[string]int

func (c counts) Apply(r eventlog.Record) error {
	for _, t := range r.Types() {
		if !strings.HasSuffix(t, ".v1") {
			return fmt.Errorf("%w: %s", eventlog.ErrUnknownType, t)
		}
	}
	c[r.Aggregate.ID] += len(r.Types())
	return nil
}

func (c counts) Snapshot() ([]byte, error) { return json.Marshal(c) }
func (c counts) Restore(data []byte) error { return json.Unmarshal(data, &c) }

func newCounts() counts { return counts{} }

func openLog(t *testing.T, dir string) *eventlog.Log {
	t.Helper()
	l, err := eventlog.OpenEmbedded(t.Context(), eventlog.EmbeddedOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// add appends one event of a version to an aggregate, and returns the commit's sequence.
func add(t *testing.T, l *eventlog.Log, id string, version int) uint64 {
	t.Helper()
	a := eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}
	records, err := l.Read(t.Context(), a, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := eventlog.Commit{Aggregate: a, ID: fmt.Sprint(len(records))}
	if n := len(records); n > 0 {
		c.Expected = records[n-1].Seq
	}
	c.Events = []eventlog.Event{{Type: fmt.Sprintf("dev.scute.move.counted.v%d", version), Time: time.Unix(1, 0), Data: json.RawMessage("{}")}}
	r, err := l.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r.Seq
}

// start runs a projector and returns how to stop it.
func start(t *testing.T, p *Projector[counts]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run ended with %v", err)
		}
	}
	select {
	case <-p.CaughtUp():
	case err := <-done:
		t.Fatal(err)
	}
	return stop
}

func viewOf(p *Projector[counts]) (seq uint64, out map[string]int) {
	p.Read(func(s uint64, v counts) {
		seq, out = s, map[string]int{}
		for k, n := range v {
			out[k] = n
		}
	})
	return seq, out
}

func TestFollowsAndWaits(t *testing.T) {
	l := openLog(t, t.TempDir())
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	p := New(l, newCounts, Options{Name: "counts"})
	stop := start(t, p)
	for range 20 {
		seq := add(t, l, "a", 1)
		if err := p.WaitFor(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		if got := p.Position(); got != seq {
			t.Fatalf("at %d, want %d", got, seq)
		}
	}
	if seq, v := viewOf(p); seq != 22 || !cmp.Equal(v, map[string]int{"a": 21, "b": 1}) {
		t.Errorf("%d %v", seq, v)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.WaitFor(ctx, 99); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it is at 22") {
		t.Errorf("%v", err)
	}
	stop()
	if err := p.WaitFor(t.Context(), 99); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestUnknownStopsOnlyItsAggregate, and a program that knows more fills the hole.
func TestUnknownStopsOnlyItsAggregate(t *testing.T) {
	l := openLog(t, t.TempDir())
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	bad := add(t, l, "a", 2)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 1}
	p := New(l, newCounts, o)
	stop := start(t, p)
	if seq, v := viewOf(p); seq != 5 || !cmp.Equal(v, map[string]int{"a": 1, "b": 2}) {
		t.Errorf("%d %v", seq, v)
	}
	aside := p.Aside()
	if len(aside) != 1 || aside[0].Seq != bad || aside[0].Commits != 2 || !errors.Is(aside[0].Err, eventlog.ErrUnknownType) {
		t.Errorf("%+v", aside)
	}
	a, b := eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, eventlog.Aggregate{Kind: eventlog.KindMove, ID: "b"}
	if err := p.Follows(a); !errors.Is(err, eventlog.ErrUnknownType) || !strings.Contains(err.Error(), "move/a since commit 3") {
		t.Errorf("a: %v", err)
	}
	if err := p.Follows(b); err != nil {
		t.Errorf("b: %v", err)
	}
	stop()
	if _, err := os.Stat(o.Snapshot); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a view with a hole was saved: %v", err)
	}
}

// TestSnapshotEqualsReplay: wherever snapshots were taken, the view and its hash are those of a replay from zero.
func TestSnapshotEqualsReplay(t *testing.T) {
	l := openLog(t, t.TempDir())
	before := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", before) }()
	if err := flag.Set("rapid.checks", "20"); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		o := Options{Name: "counts", Version: 2, Snapshot: filepath.Join(dir, "deep", "snapshot"), Every: uint64(rapid.IntRange(1, 5).Draw(rt, "every"))}
		for range rapid.IntRange(1, 3).Draw(rt, "starts") {
			p := New(l, newCounts, o)
			stop := start(t, p)
			for _, id := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 6).Draw(rt, "appends") {
				if err := p.WaitFor(t.Context(), add(t, l, id, 1)); err != nil {
					rt.Fatal(err)
				}
			}
			stop()
			zero := New(l, newCounts, Options{Name: o.Name, Version: o.Version})
			start(t, zero)()
			seq, hash, err := p.Hash()
			seq0, hash0, err0 := zero.Hash()
			if err != nil || err0 != nil || seq != seq0 || hash != hash0 {
				rt.Fatalf("with snapshots %d %s %v, from zero %d %s %v", seq, hash, err, seq0, hash0, err0)
			}
			if h, _, err := read(o.Snapshot); err == nil && h.Seq == seq && h.Hash != hash {
				rt.Fatalf("the snapshot at %d has hash %s, the view %s", h.Seq, h.Hash, hash)
			}
		}
	})
}

// TestSnapshotIsOnlyACache: whatever is done to it, the view is right, and what was wrong is logged.
func TestSnapshotIsOnlyACache(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	for range 5 {
		add(t, l, "a", 1)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	o := Options{Name: "counts", Version: 1, Snapshot: path, Every: 1}
	start(t, New(l, newCounts, o))()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file  []byte
		alter func(*Options)
		says  string
	}{
		"intact":             {good, nil, ""},
		"empty":              {nil, nil, "replaying"},
		"cut":                {good[:len(good)-1], nil, "damaged"},
		"altered view":       {bytes.Replace(good, []byte(`{"a":5}`), []byte(`{"a":6}`), 1), nil, "damaged"},
		"altered sequence":   {bytes.Replace(good, []byte(`"sequence":5`), []byte(`"sequence":4`), 1), nil, "damaged"},
		"no snapshot":        {[]byte("\x00\x01\nhello"), nil, "replaying"},
		"other format":       {bytes.Replace(good, []byte(`"format":1`), []byte(`"format":9`), 1), nil, "its format is 9"},
		"of another version": {good, func(o *Options) { o.Version = 2 }, "version 1"},
		"of another view":    {good, func(o *Options) { o.Name = "other" }, `of view \"counts\"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			var lines bytes.Buffer
			o := o
			o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			if c.alter != nil {
				c.alter(&o)
			}
			p := New(l, newCounts, o)
			start(t, p)()
			if seq, v := viewOf(p); seq != 5 || !cmp.Equal(v, map[string]int{"a": 5}) {
				t.Errorf("%d %v", seq, v)
			}
			if !strings.Contains(lines.String(), c.says) || c.says == "" && lines.Len() > 0 {
				t.Errorf("logged %q, want %q", lines.String(), c.says)
			}
		})
	}

	t.Run("of another log", func(t *testing.T) {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		other := openLog(t, t.TempDir())
		for range 6 {
			add(t, other, "b", 1)
		}
		p := New(other, newCounts, o)
		start(t, p)()
		if seq, v := viewOf(p); seq != 6 || !cmp.Equal(v, map[string]int{"b": 6}) {
			t.Errorf("%d %v", seq, v)
		}
	})

	t.Run("ahead of the log is an alarm", func(t *testing.T) {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		shorter := openLog(t, t.TempDir())
		add(t, shorter, "a", 1)
		err := New(shorter, newCounts, o).Run(t.Context())
		if !errors.Is(err, eventlog.ErrGap) || !strings.Contains(err.Error(), "taken at 5, but the log ends at 1") {
			t.Errorf("%v", err)
		}
	})
}

// TestSnapshotsAreBounded: they come every so many commits, and none while catching up.
func TestSnapshotsAreBounded(t *testing.T) {
	l := openLog(t, t.TempDir())
	for range 30 {
		add(t, l, "a", 1)
	}
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 10}
	p := New(l, newCounts, o)
	var saved []uint64
	stop := start(t, p)
	for seq := uint64(30); seq <= 55; {
		if err := p.WaitFor(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		if h, _, err := read(o.Snapshot); err == nil && (len(saved) == 0 || saved[len(saved)-1] != h.Seq) {
			saved = append(saved, h.Seq)
		}
		seq = add(t, l, "a", 1)
	}
	stop()
	if h, _, err := read(o.Snapshot); err != nil || h.Seq < 55 {
		t.Errorf("at the end there is a snapshot at %d: %v", h.Seq, err)
	}
	if len(saved) < 1 || len(saved) > 4 || saved[0] < 30 {
		t.Errorf("snapshots at %v while it followed", saved)
	}
}
