package eventlog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"
)

func TestSubjectIsInjectiveAndReversible(t *testing.T) {
	for a, want := range map[Aggregate]string{
		{KindMove, "fleet/prod"}:   "scute.log.move.fleet_2fprod",
		{"pause", "a.b_c-D9"}:      "scute.log.pause.a_2eb_5fc-D9",
		{KindRemediation, "ü > *"}: "scute.log.remediation._c3_bc_20_3e_20_2a",
	} {
		if got := a.Subject(); got != want {
			t.Errorf("subject of %v = %s, want %s", a, got, want)
		}
	}
	for _, bad := range []string{
		"", "scute.log.move.", "scute.log.move", "scute.log.Move.a", "other.log.move.a", "scute.log.move.a.b", "scute.log.move.a_",
		"scute.log.move.a_2", "scute.log.move.a_2F", "scute.log.move.a_41", "scute.log.move.a b", "scute.log.move._ff", "scute.log..a",
	} {
		if a, err := parseSubject(bad); err == nil {
			t.Errorf("parseSubject(%q) = %v, want an error", bad, a)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Aggregate{Kind: KindRun, ID: rapid.StringN(1, 60, -1).Draw(t, "id")}
		if err := a.validate(); err != nil {
			t.Skip(err)
		}
		got, err := parseSubject(a.Subject())
		if err != nil || got != a {
			t.Fatalf("parseSubject of the subject of %q = %q, error %v", a, got, err)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := "scute.log.move." + rapid.StringMatching(`[a-f0-9_.\-]{1,12}`).Draw(t, "escaped")
		if a, err := parseSubject(s); err == nil && a.Subject() != s {
			t.Fatalf("parseSubject(%q) = %q, whose subject is %q", s, a, a.Subject())
		}
	})
}

// TestCommitComesBack checks that a commit is unchanged after encoding, the wire format of NATS, and decoding.
func TestCommitComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		c := Commit{
			Aggregate: Aggregate{Kind: KindRun, ID: rapid.StringN(1, 20, -1).Draw(t, "aggregate")},
			ID:        rapid.StringN(1, 20, -1).Draw(t, "commit"), Expected: rapid.Uint64().Draw(t, "expected"),
		}
		for range rapid.IntRange(1, 5).Draw(t, "events") {
			data, err := json.Marshal(map[string]string{"v": text.Draw(t, "data")})
			if err != nil {
				t.Fatal(err)
			}
			c.Events = append(c.Events, Event{
				ID: text.Draw(t, "id"), Type: "dev.scute.run." + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "fact") + ".v1",
				Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")).UTC(), Actor: text.Draw(t, "actor"),
				Causation: text.Draw(t, "causation"), Correlation: text.Draw(t, "correlation"), Data: data,
			})
		}
		m, err := c.encode()
		if err != nil {
			t.Skip(err) // an ID that is not UTF-8
		}
		h, err := nats.DecodeHeadersMsg(headerBytes(t, m.Header))
		if err != nil {
			t.Fatal(err)
		}
		r := NewRecord(7, time.Time{}, m.Subject, h, m.Data)
		events, err := r.Events()
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for i := range c.Events {
			c.Events[i].ID = c.EventID(i)
			types = append(types, c.Events[i].Type)
		}
		if diff := cmp.Diff(c.Events, events); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(types, r.Types()); diff != "" || r.CommitID != c.ID || r.Aggregate != c.Aggregate {
			t.Fatalf("record differs: types %s, commit ID %q, aggregate %v", diff, r.CommitID, r.Aggregate)
		}
	})
}

// headerBytes returns a header in wire format.
func headerBytes(t *rapid.T, h nats.Header) []byte {
	out := []byte("NATS/1.0\r\n")
	for k, vs := range h {
		for _, v := range vs {
			for i := range len(v) {
				if v[i] < ' ' || v[i] > '~' {
					t.Fatalf("header %s has byte %#x", k, v[i])
				}
			}
			out = append(out, (k + ": " + v + "\r\n")...)
		}
	}
	return append(out, '\r', '\n')
}

func TestCommitIsRefusedBeforeItIsSent(t *testing.T) {
	good := Commit{Aggregate: Aggregate{Kind: KindMove, ID: "a"}, ID: "c", Events: []Event{{
		Type: "dev.scute.move.tested.v1", Time: time.Now(), Data: json.RawMessage(`{}`),
	}}}
	for name, spoil := range map[string]func(*Commit){
		"no id":           func(c *Commit) { c.ID = "" },
		"no events":       func(c *Commit) { c.Events = nil },
		"no aggregate":    func(c *Commit) { c.Aggregate = Aggregate{} },
		"empty aggregate": func(c *Commit) { c.Aggregate.ID = "" },
		"kind":            func(c *Commit) { c.Aggregate.Kind = "a.b" },
		"other's type":    func(c *Commit) { c.Events[0].Type = "dev.scute.pause.x.v1" },
		"data":            func(c *Commit) { c.Events[0].Data = json.RawMessage("{") },
		"no data":         func(c *Commit) { c.Events[0].Data = nil },
	} {
		c := good
		c.Events = append([]Event(nil), good.Events...)
		spoil(&c)
		if _, err := c.encode(); err == nil {
			t.Errorf("%s: encode succeeded", name)
		}
	}
	if _, err := good.encode(); err != nil {
		t.Error(err)
	}
}

// TestTypesAreBounded checks that the number of types in a header is limited in total, and not only for each entry.
func TestTypesAreBounded(t *testing.T) {
	if got := unpackTypes(strings.Repeat("a*1048576,", 4)); len(got) > maxBatch {
		t.Errorf("got %d types, want at most maxBatch", len(got))
	}
}
