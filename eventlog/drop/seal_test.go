package drop_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/consume"
	"scute.dev/eventlog/seal"
)

// TestSealed: a log is sealed across a drop: with the tree from before, and with one that is made at the floor, the checkpoints are those of the
// whole log; they say whether what is left was changed, and prove it.
func TestSealed(t *testing.T) {
	dir, archive := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	l := open(t, dir)
	_, last := fill(t, l)
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(dir string) (seal.Checkpoint, []byte) {
		t.Helper()
		s, err := seal.OpenSealer(dir, l, key)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		c, signed, err := s.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c, signed
	}
	kept := t.TempDir()
	early, _ := sealed(kept)
	var whole seal.Sum
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error { whole.Add(seal.MessageOf(r)); return nil }); err != nil {
		t.Fatal(err)
	}
	back(t, l, archive)
	mustDrop(t, l, archive, 2)
	add(t, l, "open", "more", last)
	head, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Replay(t.Context(), early.Size, func(r eventlog.Record) error { whole.Add(seal.MessageOf(r)); return nil }); err != nil {
		t.Fatal(err)
	}
	want := whole.Checkpoint(l.ID())
	fresh := t.TempDir()
	for name, dir := range map[string]string{"from before": kept, "made at the floor": fresh} {
		c, signed := sealed(dir)
		if c != want || c.Size != head {
			t.Fatalf("%s: %+v, want %+v", name, c, want)
		}
		if again, _ := sealed(dir); again != want {
			t.Errorf("%s, opened again: %+v", name, again)
		}
		tree, err := seal.ReadTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := seal.Continues(tree, early, c); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		verify := func(alter uint64, earlier ...seal.Checkpoint) seal.Report {
			t.Helper()
			v := seal.NewVerifier(c, earlier, tree)
			if err := v.From(l.Floor()); err != nil {
				t.Fatal(err)
			}
			if err := l.Scan(t.Context(), func(r eventlog.Record) error {
				m := seal.MessageOf(r)
				if m.Seq == alter {
					m.Data = []byte(`{}`)
				}
				return v.Add(m)
			}); err != nil {
				t.Fatal(err)
			}
			report, err := v.Report()
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		if r := verify(0, seal.Checkpoint{LogID: c.LogID, Size: 2}, early); !r.Intact() || len(r.Notes) == 0 || r.From != l.Floor().Seq {
			t.Errorf("%s: %+v", name, r)
		}
		if r := verify(head - 1); r.Intact() || r.Findings[0].First != head-1 || r.Findings[0].Kind != seal.Changed {
			t.Errorf("%s: a change is not found: %+v", name, r)
		}
		p, err := seal.NewProver(c, signed, head-1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.From(l.Floor()); err != nil {
			t.Fatal(err)
		}
		if err := l.Scan(t.Context(), func(r eventlog.Record) error { p.Add(seal.MessageOf(r)); return nil }); err != nil {
			t.Fatal(err)
		}
		proof, err := p.Proof()
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.Public(l.ID())
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := seal.CheckProof(proof, public); err != nil || m.Seq != head-1 {
			t.Errorf("%s: %v", name, err)
		}
		if p, err = seal.NewProver(c, signed, 1); err != nil || !errors.Is(p.From(l.Floor()), eventlog.ErrDropped) {
			t.Errorf("%s: a commit that was dropped is proven: %v", name, err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
	tree, err := seal.ReadTree(fresh)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if _, err := tree.Root(3); !errors.Is(err, eventlog.ErrDropped) {
		t.Errorf("the root below the floor: %v", err)
	}
}

// positioned is a consumer's position.
type positioned struct{ consume.Position }

func (p *positioned) Load(context.Context) (consume.Position, error) { return p.Position, nil }

func (p *positioned) Save(_ context.Context, to consume.Position) error { p.Position = to; return nil }

// TestConsumerBelowTheFloor: a consumer that has not had what was dropped says so, and does not skip it.
func TestConsumerBelowTheFloor(t *testing.T) {
	l, archive := open(t, t.TempDir()), filepath.Join(t.TempDir(), "archive")
	fill(t, l)
	back(t, l, archive)
	mustDrop(t, l, archive, 2)
	floor := l.Floor().Seq
	for _, seq := range []uint64{0, 1, floor - 4} {
		c := consume.Consumer{Log: l, Store: &positioned{consume.Position{LogID: l.ID(), Sequence: seq}}, Take: func(context.Context, eventlog.CloudEvent) error { return nil }}
		if err := c.Run(t.Context()); !errors.Is(err, eventlog.ErrDropped) {
			t.Errorf("at %d: %v", seq, err)
		}
	}
	errDone := errors.New("done")
	var first string
	c := consume.Consumer{Log: l, Store: &positioned{consume.Position{LogID: l.ID(), Sequence: floor - 1}}, Take: func(_ context.Context, e eventlog.CloudEvent) error {
		first = e.Sequence
		return errDone
	}}
	if err := c.Run(t.Context()); !errors.Is(err, errDone) || first == "" {
		t.Errorf("at the floor: %v, %q", err, first)
	}
}
