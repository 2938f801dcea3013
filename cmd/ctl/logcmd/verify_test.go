package logcmd

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/internal/projection"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// forgetful is the daemon's view in a program that drops the commits after one of them.
type forgetful struct {
	*projection.View
	of    string
	after uint64
}

func (f forgetful) Apply(r eventlog.Record) error {
	if r.Aggregate.String() == f.of && r.Seq > f.after {
		f.Usage.Apply(r)
		return nil
	}
	return f.View.Apply(r)
}

// TestVerify: the snapshot that the daemon takes is what a replay gives, and one that is not is refused, by name.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	events, err := pinned.Load(filepath.Join("..", "..", "..", "mover", "testdata", "histories", "target-wiped.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	last := make(map[string]uint64)
	for i, e := range events[:len(events)-2] {
		for _, id := range []string{"fleet/one", "fleet/two"} {
			c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, ID: fmt.Sprint(i), Expected: last[id], Events: []eventlog.Event{e}}
			receipt, err := l.Append(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			last[id] = receipt.Seq
		}
	}
	for name, c := range map[string]struct {
		view   projector.Snapshotter
		differ string
	}{
		"as the daemon takes it": {projection.New(usage.Limits{}), ""},
		"folded in another way":  {forgetful{projection.New(usage.Limits{}), "move/fleet/two", 20}, "move/fleet/two"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			take(t, l, c.view, projection.File(folder))
			var out bytes.Buffer
			o := &replayOptions{deps: deps{&kit.Kit{Env: &cli.Env{Name: "scutectl", Out: &out}, Flags: connect.New()}}, Snapshots: folder}
			err := o.verify(t.Context(), &connect.Log{Log: l})
			if (err == nil) != (c.differ == "") || err != nil && !strings.Contains(out.String(), "Differs       "+c.differ+"\n") || strings.Count(out.String(), "Differs") > 1 {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// take has a projector take a snapshot.
func take(t *testing.T, l *eventlog.Log, v projector.Snapshotter, file string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := projector.New(l, v, projector.Options{Name: projection.Name, Program: "test", Snapshot: file, Every: 1})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	select {
	case <-p.CaughtUp():
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	<-ended
}
