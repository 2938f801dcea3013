package trust

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog"
)

func TestJudge(t *testing.T) {
	own := Identity{LogID: "aaaa", Head: 10, Cluster: "here"}
	for name, c := range map[string]struct {
		state State
		mark  Mark
		want  Reason
	}{
		"first start":                  {State{}, Mark{}, ""},
		"as it was":                    {State{Cluster: "here"}, Mark{"aaaa", 10}, ""},
		"further":                      {State{Cluster: "here"}, Mark{"aaaa", 7}, ""},
		"went back":                    {State{Cluster: "here"}, Mark{"aaaa", 11}, WentBack},
		"went back and reconciled":     {State{Cluster: "here", Accepted: []Mark{{"aaaa", 11}}}, Mark{"aaaa", 11}, ""},
		"went back again":              {State{Cluster: "here", Accepted: []Mark{{"aaaa", 11}}}, Mark{"aaaa", 12}, WentBack},
		"another log":                  {State{Cluster: "here"}, Mark{"bbbb", 3}, Replaced},
		"an empty log":                 {State{}, Mark{"bbbb", 3}, Replaced},
		"another log, reconciled":      {State{Cluster: "here", Accepted: []Mark{{"bbbb", 3}}}, Mark{"bbbb", 3}, ""},
		"the other log acted again":    {State{Cluster: "here", Accepted: []Mark{{"bbbb", 3}}}, Mark{"bbbb", 4}, Replaced},
		"a log of another cluster":     {State{Cluster: "there"}, Mark{}, AnotherCluster},
		"and marked by another log":    {State{Cluster: "there"}, Mark{"bbbb", 3}, AnotherCluster},
		"and reconciled with the mark": {State{Cluster: "there", Accepted: []Mark{{"bbbb", 3}}}, Mark{"bbbb", 3}, AnotherCluster},
	} {
		t.Run(name, func(t *testing.T) {
			f := Judge(&c.state, own, c.mark)
			var got Reason
			if f != nil {
				got = f.Reason
				if !strings.Contains(f.Message, "aaaa") || !strings.Contains(f.Next, "scutectl log reconcile") {
					t.Errorf("%s does not say which log and what to do", f)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestStoredForm pins the JSON of the log's own events, and reads it back.
func TestStoredForm(t *testing.T) {
	for want, e := range map[string]Event{
		`dev.scute.daemon.bound.v1 {"cluster":"u"}`: Bound{Cluster: "u"},
		`dev.scute.daemon.reconciled.v1 {"cluster":"u","mark":{"logID":"a","sequence":7},"open":[{"name":"move/n/m/1","log":"Verified","world":"Deleting","then":"goes on"}]}`: Reconciled{
			Cluster: "u", Mark: Mark{"a", 7}, Open: []Outcome{{Name: "move/n/m/1", Log: "Verified", World: "Deleting", Then: "goes on"}},
		},
	} {
		ev, err := NewCatalog().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := ev.Type + " " + string(ev.Data); got != want {
			t.Errorf("stored as %s\nwant %s", got, want)
		}
		back, err := NewCatalog().Decode(eventlog.Event{Type: ev.Type, Data: ev.Data})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	}
}

// TestView folds what is stored, and two daemons that bind a log at the same time do not both succeed.
func TestView(t *testing.T) {
	log, err := eventlog.OpenEmbedded(t.Context(), eventlog.EmbeddedOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	add := func(e Event, actor string, seq uint64) error {
		c, err := Commit(e, actor, seq, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		_, err = log.Append(t.Context(), c)
		return err
	}
	if err := add(Bound{"here"}, "daemon/one", 0); err != nil {
		t.Fatal(err)
	}
	if err := add(Bound{"there"}, "daemon/two", 0); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("bound to two clusters: %v", err)
	}
	if err := add(Reconciled{Cluster: "here", Mark: Mark{"b", 3}}, "user/test", 1); err != nil {
		t.Fatal(err)
	}
	v := NewView()
	if _, err := log.Replay(context.WithoutCancel(t.Context()), 0, v.Apply); err != nil {
		t.Fatal(err)
	}
	state, seq := v.State()
	if diff := cmp.Diff(State{Cluster: "here", Accepted: []Mark{{"b", 3}}}, state); diff != "" || seq != 2 {
		t.Errorf("sequence %d (-want +got):\n%s", seq, diff)
	}
}
