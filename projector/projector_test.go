package projector

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
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

func (c counts) Snapshot(put func(string, []byte) error) error {
	for _, id := range slices.Sorted(maps.Keys(c)) {
		if err := put(eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}.String(), []byte(strconv.Itoa(c[id]))); err != nil {
			return err
		}
	}
	return nil
}

func (c counts) Restore(part string, data []byte) (err error) {
	c[strings.TrimPrefix(part, "move/")], err = strconv.Atoi(string(data))
	return err
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
	l := logtest.Open(t)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	p := New(l, counts{}, Options{Name: "counts"})
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
	l := logtest.Open(t)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	add(t, l, "a", 2)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	var lines bytes.Buffer
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 1, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
	p := New(l, counts{}, o)
	stop := start(t, p)
	if seq, v := viewOf(p); seq != 5 || !cmp.Equal(v, map[string]int{"a": 1, "b": 2}) {
		t.Errorf("%d %v", seq, v)
	}
	if !strings.Contains(lines.String(), "aggregate=move/a sequence=3") || strings.Count(lines.String(), "set aside") != 1 {
		t.Errorf("logged %q", lines.String())
	}
	stop()
	if _, err := os.Stat(o.Snapshot); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a view with a hole was saved: %v", err)
	}
}

// TestSnapshotEqualsReplay: wherever snapshots were taken, the view and its hash are those of a replay from zero.
func TestSnapshotEqualsReplay(t *testing.T) {
	l := logtest.Open(t)
	before := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", before) }()
	if err := flag.Set("rapid.checks", "20"); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		o := Options{Name: "counts", Program: "p2", Snapshot: filepath.Join(dir, "deep", "snapshot"), Every: uint64(rapid.IntRange(1, 5).Draw(rt, "every"))}
		for range rapid.IntRange(1, 3).Draw(rt, "starts") {
			p := New(l, counts{}, o)
			stop := start(t, p)
			for _, id := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 6).Draw(rt, "appends") {
				if err := p.WaitFor(t.Context(), add(t, l, id, 1)); err != nil {
					rt.Fatal(err)
				}
			}
			stop()
			zero := New(l, counts{}, Options{Name: o.Name})
			start(t, zero)()
			if hash, want := hashOf(t, p), hashOf(t, zero); hash != want || p.Position() != zero.Position() {
				rt.Fatalf("with snapshots %d %s, from zero %d %s", p.Position(), hash, zero.Position(), want)
			}
			if s, err := openFile(o.Snapshot); err == nil {
				_ = s.f.Close()
				if d, err := Verify(t.Context(), l, o.Snapshot, counts{}); err != nil || len(d.Parts) > 0 || d.Hash != d.Replayed {
					rt.Fatalf("%+v %v", d, err)
				}
			}
		}
	})
}

// TestSnapshotIsOnlyACache: whatever is done to it, the view is right, and what was wrong is logged.
func TestSnapshotIsOnlyACache(t *testing.T) {
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved")
	first, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		add(t, first, "a", 1)
	}
	if err := errors.Join(first.Close(), os.CopyFS(saved, os.DirFS(dir))); err != nil {
		t.Fatal(err)
	}
	l := logtest.OpenIn(t, dir)
	for range 2 {
		add(t, l, "a", 1)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	o := Options{Name: "counts", Program: "p1", Snapshot: path, Every: 1}
	start(t, New(l, counts{}, o))()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file  []byte
		alter func(*Options)
		says  string
	}{
		"intact":             {good, nil, "view restored from a snapshot"},
		"empty":              {nil, nil, "replaying"},
		"cut":                {good[:len(good)-1], nil, "damaged"},
		"altered view":       {bytes.Replace(good, []byte("move/a\x015"), []byte("move/a\x016"), 1), nil, "damaged"},
		"altered sequence":   {bytes.Replace(good, []byte(`"sequence":5`), []byte(`"sequence":4`), 1), nil, "damaged"},
		"no snapshot":        {[]byte("\x00\x01\nhello"), nil, "replaying"},
		"other format":       {other(good), nil, "its format is 9"},
		"of another program": {good, func(o *Options) { o.Program = "p2" }, "program \\\"p1"},
		"of another view":    {good, func(o *Options) { o.Name = "other" }, `of view \"counts`},
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
			p := New(l, counts{}, o)
			start(t, p)()
			if seq, v := viewOf(p); seq != 5 || !cmp.Equal(v, map[string]int{"a": 5}) {
				t.Errorf("%d %v", seq, v)
			}
			if !strings.Contains(lines.String(), c.says) || strings.Count(lines.String(), "\n") != 1 {
				t.Errorf("logged %q, want %q", lines.String(), c.says)
			}
		})
	}

	t.Run("of another log", func(t *testing.T) {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		other := logtest.Open(t)
		for range 6 {
			add(t, other, "b", 1)
		}
		p := New(other, counts{}, o)
		start(t, p)()
		if seq, v := viewOf(p); seq != 6 || !cmp.Equal(v, map[string]int{"b": 6}) {
			t.Errorf("%d %v", seq, v)
		}
	})

	t.Run("ahead of the log", func(t *testing.T) {
		back := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(back, os.DirFS(saved)); err != nil {
			t.Fatal(err)
		}
		shorter := logtest.OpenIn(t, back)
		add(t, shorter, "a", 1)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		p := New(shorter, counts{}, o)
		start(t, p)()
		if seq, v := viewOf(p); seq != 4 || !cmp.Equal(v, map[string]int{"a": 4}) {
			t.Errorf("%d %v", seq, v)
		}
	})

	t.Run("of a log that went another way", func(t *testing.T) {
		back := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(back, os.DirFS(saved)); err != nil {
			t.Fatal(err)
		}
		fork := logtest.OpenIn(t, back)
		add(t, fork, "a", 1)
		add(t, fork, "b", 1)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		p := New(fork, counts{}, o)
		start(t, p)()
		if seq, v := viewOf(p); seq != 5 || !cmp.Equal(v, map[string]int{"a": 4, "b": 1}) {
			t.Errorf("%d %v", seq, v)
		}
	})
}

// TestSnapshotsAreBounded: they come every so many commits, and none while catching up.
func TestSnapshotsAreBounded(t *testing.T) {
	l := logtest.Open(t)
	for range 30 {
		add(t, l, "a", 1)
	}
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 10}
	p := New(l, counts{}, o)
	var saved []uint64
	stop := start(t, p)
	for seq := uint64(30); seq <= 55; {
		if err := p.WaitFor(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		if h, err := headerOf(o.Snapshot); err == nil && (len(saved) == 0 || saved[len(saved)-1] != h.Seq) {
			saved = append(saved, h.Seq)
		}
		seq = add(t, l, "a", 1)
	}
	stop()
	if h, err := headerOf(o.Snapshot); err != nil || h.Seq < 55 {
		t.Errorf("at the end there is a snapshot at %d: %v", h.Seq, err)
	}
	if len(saved) < 1 || len(saved) > 4 || saved[0] < 30 {
		t.Errorf("snapshots at %v while it followed", saved)
	}
}

// TestKilledWhileWriting: whatever is left of a snapshot that was being written, the one before it counts, and the next one is
// written over it.
func TestKilledWhileWriting(t *testing.T) {
	l := logtest.Open(t)
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 1}
	add(t, l, "a", 1)
	start(t, New(l, counts{}, o))()
	before, err := os.ReadFile(o.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, "b", 1)
	start(t, New(l, counts{}, o))()
	after, err := os.ReadFile(o.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n <= len(after); n += 7 {
		if err := errors.Join(os.WriteFile(o.Snapshot, before, 0o600), os.WriteFile(o.Snapshot+".tmp", after[:n], 0o600)); err != nil {
			t.Fatal(err)
		}
		p := New(l, counts{}, o)
		start(t, p)()
		if seq, v := viewOf(p); seq != 2 || !cmp.Equal(v, map[string]int{"a": 1, "b": 1}) {
			t.Errorf("killed after %d bytes: %d %v", n, seq, v)
		}
		if h, err := headerOf(o.Snapshot); err != nil || h.Seq != 2 {
			t.Errorf("killed after %d bytes: the next snapshot: %+v %v", n, h, err)
		}
	}
}

// TestHold: a snapshot that is put off is taken later.
func TestHold(t *testing.T) {
	l := logtest.Open(t)
	add(t, l, "a", 1)
	var hold atomic.Bool
	hold.Store(true)
	o := Options{Name: "counts", Snapshot: filepath.Join(t.TempDir(), "snapshot"), Every: 1, Hold: hold.Load}
	start(t, New(l, counts{}, o))()
	if _, err := os.Stat(o.Snapshot); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was taken: %v", err)
	}
	hold.Store(false)
	start(t, New(l, counts{}, o))()
	if h, err := headerOf(o.Snapshot); err != nil || h.Seq != 1 {
		t.Errorf("%+v %v", h, err)
	}
}

// TestVerifyNamesWhatDiffers: a snapshot of a view that was folded in another way, with a sound file.
func TestVerifyNamesWhatDiffers(t *testing.T) {
	l := logtest.Open(t)
	for _, id := range []string{"a", "b", "c"} {
		add(t, l, id, 1)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	last, err := l.At(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	h := Header{Format: format, View: "counts", Log: l.ID(), Seq: 3, Commit: last.Fingerprint()}
	if err := writeFile(path, h, counts{"a": 1, "b": 2, "d": 1}); err != nil {
		t.Fatal(err)
	}
	d, err := Verify(t.Context(), l, path, counts{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"move/b", "move/c", "move/d"}, d.Parts); diff != "" || d.Hash == d.Replayed {
		t.Error(diff, d)
	}
}

func hashOf(t *testing.T, p *Projector[counts]) (hash string) {
	t.Helper()
	p.Read(func(_ uint64, v counts) {
		var err error
		if hash, err = Hash(v); err != nil {
			t.Fatal(err)
		}
	})
	return hash
}

func headerOf(path string) (Header, error) {
	s, err := openFile(path)
	if err != nil {
		return Header{}, err
	}
	return s.Header, s.f.Close()
}

// other is a sound file of another format.
func other(good []byte) []byte {
	body := bytes.Replace(good[:len(good)-sha256.Size], []byte(`"format":2`), []byte(`"format":9`), 1)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}
