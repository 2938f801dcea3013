package eventlog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type testFact interface{ isTestFact() }

type started struct {
	Clusters []string `json:"clusters"`
}

type ended struct{}

type startedV1 struct {
	Cluster string `json:"cluster"`
}

type startedV2 struct {
	Names []string `json:"names"`
}

func (v1 startedV1) v2() startedV2 { return startedV2{[]string{v1.Cluster}} }
func (v2 startedV2) v3() started   { return started{v2.Names} }

func (started) isTestFact() {}
func (ended) isTestFact()   {}

// testCatalog defines "started" at version 3: version 1 had one cluster, version 2 a list called names.
func testCatalog() *Catalog[testFact] {
	return NewCatalog[testFact](KindMove,
		Define[testFact, started]("started", 3),
		Upcast[testFact]("started", 1, startedV1.v2),
		Upcast[testFact]("started", 2, startedV2.v3),
		Define[testFact, ended]("ended", 1),
	)
}

func TestCatalog(t *testing.T) {
	c := testCatalog()
	ev, err := c.Encode(started{[]string{"a"}})
	if diff := cmp.Diff(Event{Type: "dev.scute.move.started.v3", Data: json.RawMessage(`{"clusters":["a"]}`)}, ev); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, ev := range []Event{
		ev,
		{Type: "dev.scute.move.started.v1", Data: json.RawMessage(`{"cluster":"a"}`)},
		{Type: "dev.scute.move.started.v2", Data: json.RawMessage(`{"names":["a"]}`)},
	} {
		got, err := c.Decode(ev)
		if diff := cmp.Diff(started{[]string{"a"}}, got); diff != "" || err != nil {
			t.Error(ev.Type, diff, err)
		}
	}
	for typ, unknown := range map[string]bool{
		"dev.scute.move.started.v4": true, "dev.scute.move.paused.v1": true, "dev.scute.pause.started.v1": true,
		"dev.scute.move.started": true, "dev.scute.move.started.v0": true, "started": true, "": true,
		"dev.scute.move.ended.v1": false,
	} {
		if _, err := c.Decode(Event{Type: typ, Data: json.RawMessage(`{}`)}); errors.Is(err, ErrUnknownType) != unknown || !unknown && err != nil {
			t.Errorf("Decode(%q) = %v", typ, err)
		}
	}
	if _, err := c.Decode(Event{ID: "e1", Type: "dev.scute.move.started.v3", Data: json.RawMessage(`{"clusters":7}`)}); err == nil || errors.Is(err, ErrUnknownType) {
		t.Errorf("Decode of invalid data = %v, want an error other than ErrUnknownType", err)
	}
	// An unknown field may change the meaning of the event.
	newer := Event{ID: "e1", Type: "dev.scute.move.started.v3", Data: json.RawMessage(`{"clusters":["a"],"only":{"if":"safe"}}`)}
	if _, err := c.Decode(newer); !errors.Is(err, ErrUnknownType) || !strings.Contains(err.Error(), `unknown field "only"`) {
		t.Errorf("Decode of an unknown field = %v, want ErrUnknownType", err)
	}
	newer = Event{ID: "e1", Type: "dev.scute.move.started.v1", Data: json.RawMessage(`{"cluster":"a","only":{"if":"safe"}}`)}
	if _, err := c.Decode(newer); !errors.Is(err, ErrUnknownType) || !strings.Contains(err.Error(), `unknown field "only"`) {
		t.Errorf("Decode of an unknown field in an older version = %v, want ErrUnknownType", err)
	}
	if _, err := c.Encode(nil); !errors.Is(err, ErrUnknownType) {
		t.Errorf("Encode(nil) = %v, want ErrUnknownType", err)
	}
}

func TestCatalogRefusesContradictions(t *testing.T) {
	up := func(e ended) ended { return e }
	for want, facts := range map[string][]Fact[testFact]{
		"does not implement": {Define[testFact, Event]("event", 1)},
		"defined twice":      {Define[testFact, ended]("a", 1), Define[testFact, ended]("b", 1)},
		"has 0 upcasts":      {Define[testFact, ended]("ended", 2)},
		"does not fit":       {Define[testFact, ended]("ended", 1), Upcast[testFact]("ended", 1, up)},
		"without dots":       {Define[testFact, ended]("a.b", 1)},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("NewCatalog panicked with %q, want %q", got, want)
				}
			}()
			NewCatalog(KindMove, facts...)
		}()
	}
}

// TestFold checks that Fold applies events in order with their times, and none of a commit that it cannot decode.
func TestFold(t *testing.T) {
	c, at := testCatalog(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	stored := func(types ...string) Record {
		commit := Commit{Aggregate: Aggregate{Kind: KindMove, ID: "a"}, ID: "one"}
		for i, typ := range types {
			data := `{}`
			if strings.Contains(typ, "started") {
				data = `{"clusters":["a"]}`
			}
			commit.Events = append(commit.Events, Event{Type: typ, Time: at.Add(time.Duration(i) * time.Second), Actor: "test", Data: json.RawMessage(data)})
		}
		m, err := commit.encode()
		if err != nil {
			t.Fatal(err)
		}
		return NewRecord(1, at, m.Subject, m.Header, m.Data)
	}
	type applied struct {
		Fact testFact
		At   time.Time
	}
	var got []applied
	take := func(fact testFact, at time.Time) { got = append(got, applied{fact, at}) }
	if err := c.Fold(stored("dev.scute.move.started.v3", "dev.scute.move.ended.v1"), take); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]applied{{started{[]string{"a"}}, at}, {ended{}, at.Add(time.Second)}}, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	if err := c.Fold(stored("dev.scute.move.started.v3", "dev.scute.move.ended.v9"), take); err == nil || len(got) > 0 {
		t.Errorf("Fold of an unknown event: error %v, applied %v, want an error and no events", err, got)
	}
}

// TestIDFor checks that commits have the same ID only if their actor, aggregate, expected sequence and events are
// equal.
func TestIDFor(t *testing.T) {
	one := Commit{Aggregate: Aggregate{Kind: KindMove, ID: "a"}, Expected: 3, Events: []Event{{Type: "x", Data: json.RawMessage(`1`)}}}
	same := one
	same.Events = append([]Event(nil), one.Events...)
	if one.IDFor("me") != same.IDFor("me") {
		t.Error("IDFor differs for equal commits")
	}
	seen := map[string]bool{one.IDFor("me"): true, one.IDFor("you"): true}
	for _, change := range []func(*Commit){
		func(c *Commit) { c.Aggregate.ID = "b" },
		func(c *Commit) { c.Expected = 4 },
		func(c *Commit) { c.Events[0].Type = "y" },
		func(c *Commit) { c.Events[0].Data = json.RawMessage(`2`) },
		func(c *Commit) { c.Events = append(c.Events, Event{Type: "x"}) },
	} {
		other := one
		other.Events = append([]Event(nil), one.Events...)
		change(&other)
		seen[other.IDFor("me")] = true
	}
	if len(seen) != 7 {
		t.Errorf("got %d unique IDs, want 7", len(seen))
	}
}
