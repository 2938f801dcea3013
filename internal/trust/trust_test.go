package trust

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

func TestJudge(t *testing.T) {
	own := Identity{LogID: "aaaa", Head: 10, Cluster: "here"}
	here := func(accepted ...Watermark) State { return State{Cluster: "here", Accepted: accepted} }
	for name, c := range map[string]struct {
		state State
		marks Watermarks
		want  Reason
	}{
		"first start":                  {State{}, Watermarks{}, ""},
		"as it was":                    {here(), Watermarks{Lease: Watermark{"aaaa", 10}}, ""},
		"further":                      {here(), Watermarks{Lease: Watermark{"aaaa", 7}}, ""},
		"went back":                    {here(), Watermarks{Lease: Watermark{"aaaa", 11}}, WentBack},
		"went back and reconciled":     {here(Watermark{"aaaa", 11}), Watermarks{Lease: Watermark{"aaaa", 11}}, ""},
		"went back again":              {here(Watermark{"aaaa", 11}), Watermarks{Lease: Watermark{"aaaa", 12}}, WentBack},
		"went back behind its return":  {here(Watermark{"aaaa", 20}), Watermarks{Lease: Watermark{"aaaa", 15}}, WentBack},
		"another log":                  {here(), Watermarks{Lease: Watermark{"bbbb", 3}}, Replaced},
		"an empty log":                 {State{}, Watermarks{Lease: Watermark{"bbbb", 3}}, Replaced},
		"another log, reconciled":      {here(Watermark{"bbbb", 3}), Watermarks{Lease: Watermark{"bbbb", 3}}, ""},
		"the other log acted again":    {here(Watermark{"bbbb", 3}), Watermarks{Lease: Watermark{"bbbb", 4}}, Replaced},
		"a log of another cluster":     {State{Cluster: "there"}, Watermarks{}, AnotherCluster},
		"and marked by another log":    {State{Cluster: "there"}, Watermarks{Lease: Watermark{"bbbb", 3}}, AnotherCluster},
		"and reconciled with the mark": {State{Cluster: "there", Accepted: []Watermark{{"bbbb", 3}}}, Watermarks{Lease: Watermark{"bbbb", 3}}, AnotherCluster},

		"reconciled":                                                 {State{Cluster: "here", Reconciled: []string{"mon", "tue"}}, Watermarks{Lease: Watermark{"aaaa", 7}, Reconciled: "tue"}, ""},
		"reconciled since, and not this copy":                        {State{Cluster: "here", Reconciled: []string{"mon"}}, Watermarks{Lease: Watermark{"aaaa", 7}, Reconciled: "tue"}, WentBack},
		"the same, and this copy is reconciled":                      {State{Cluster: "here", Accepted: []Watermark{{"aaaa", 7}}, Reconciled: []string{"wed"}}, Watermarks{Lease: Watermark{"aaaa", 7}, Reconciled: "tue"}, ""},
		"reconciled, and at the mark that was accepted":              {State{Cluster: "here", Accepted: []Watermark{{"aaaa", 10}}, Reconciled: []string{"tue"}}, Watermarks{Lease: Watermark{"aaaa", 10}, Reconciled: "tue"}, ""},
		"the same, and it went back again":                           {State{Cluster: "here", Accepted: []Watermark{{"aaaa", 11}}, Reconciled: []string{"tue"}}, Watermarks{Lease: Watermark{"aaaa", 11}, Reconciled: "tue"}, WentBack},
		"the same, and reconciled again":                             {State{Cluster: "here", Accepted: []Watermark{{"aaaa", 11}}, Reconciled: []string{"tue", "wed"}}, Watermarks{Lease: Watermark{"aaaa", 11}, Reconciled: "tue"}, ""},
		"another log was reconciled":                                 {here(), Watermarks{Lease: Watermark{"bbbb", 3}, Reconciled: "tue"}, Replaced},
		"statuses as it was":                                         {here(), Watermarks{Statuses: Watermark{"aaaa", 10}}, ""},
		"statuses beyond the head":                                   {here(), Watermarks{Statuses: Watermark{"aaaa", 11}}, WentBack},
		"statuses beyond the Lease":                                  {here(), Watermarks{Lease: Watermark{"aaaa", 9}, Statuses: Watermark{"aaaa", 11}}, WentBack},
		"statuses, reconciled":                                       {here(Watermark{"aaaa", 11}), Watermarks{Statuses: Watermark{"aaaa", 11}}, ""},
		"statuses below what was accepted":                           {here(Watermark{"aaaa", 14}), Watermarks{Statuses: Watermark{"aaaa", 11}}, ""},
		"statuses beyond what was accepted":                          {here(Watermark{"aaaa", 14}), Watermarks{Statuses: Watermark{"aaaa", 15}}, WentBack},
		"accepted for another log":                                   {here(Watermark{"bbbb", 14}), Watermarks{Statuses: Watermark{"aaaa", 11}}, WentBack},
		"the Lease of one log, reconciled, and statuses of this one": {here(Watermark{"bbbb", 3}), Watermarks{Lease: Watermark{"bbbb", 3}, Statuses: Watermark{"aaaa", 11}}, WentBack},
	} {
		t.Run(name, func(t *testing.T) {
			f := Check(&c.state, own, c.marks)
			var got Reason
			if f != nil {
				got = f.Reason
				if !strings.Contains(f.Message, "aaaa") || !strings.Contains(f.Next, "scutectl log reconcile") {
					t.Errorf("%s does not name the log and what to do", f)
				}
			}
			if got != c.want {
				t.Errorf("reason = %q, want %q", got, c.want)
			}
		})
	}
}

// TestStoredForm checks that the log's own events still have the JSON in which they were written, and are decoded.
func TestStoredForm(t *testing.T) {
	for want, e := range map[string]Event{
		`dev.scute.daemon.bound.v1 {"cluster":"u"}`: Bound{Cluster: "u"},
		`dev.scute.daemon.reconciled.v1 {"cluster":"u","watermark":{"logID":"a","sequence":7},"open":[{"name":"move/n/m/1","log":"Verified","resource":"Deleting","next":"goes on"}]}`: Reconciled{
			Cluster: "u", Watermark: Watermark{"a", 7}, Open: []Outcome{{Name: "move/n/m/1", Log: "Verified", Resource: "Deleting", Next: "goes on"}},
		},
		`dev.scute.daemon.reconciled.v1 {"cluster":"u","watermark":{},"statuses":{"logID":"a","sequence":7}}`: Reconciled{
			Cluster: "u", Statuses: Watermark{"a", 7},
		},
	} {
		ev, err := NewCatalog().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := ev.Type + " " + string(ev.Data); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		back, err := NewCatalog().Decode(eventlog.Event{Type: ev.Type, Data: ev.Data})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Errorf("decoded (-want +got):\n%s", diff)
		}
	}
}

// TestEventOfANewerVersion checks that an event about the log itself that this version does not know is a fault,
// whatever else the log contains.
func TestEventOfANewerVersion(t *testing.T) {
	log := logtest.Open(t)
	v := NewView()
	last := uint64(0)
	add := func(kind, data string) {
		t.Helper()
		c := eventlog.Commit{Aggregate: Aggregate(), ID: kind, Expected: last, Events: []eventlog.Event{{Type: kind, Time: time.Now(), Data: []byte(data)}}}
		receipt, err := log.Append(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		last = receipt.Seq
		r, err := log.At(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		_ = v.Apply(r) // as the daemon's projector, which sets the aggregate aside
	}
	judge := func() *Fault {
		state, _ := v.State()
		return Check(&state, Identity{LogID: log.ID(), Head: last, Cluster: "here"}, Watermarks{})
	}
	add("dev.scute.daemon.bound.v1", `{"cluster":"here"}`)
	if f := judge(); f != nil {
		t.Fatal(f)
	}
	add("dev.scute.daemon.bound.v9", `{"cluster":"there"}`)
	if f := judge(); f == nil || f.Reason != Newer || !strings.Contains(f.Message, "bound.v9") || !strings.Contains(f.Next, "or a newer one") {
		t.Errorf("Judge with an unknown event = %v, want Newer", f)
	}
}

// TestView checks the folded state, and that two daemons cannot both bind a log.
func TestView(t *testing.T) {
	log, at := logtest.Open(t), time.Now().UTC()
	add := func(e Event, actor string, seq uint64) error {
		c, err := Commit(e, actor, seq, at)
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
		t.Errorf("second Bound = %v, want ErrConflict", err)
	}
	if err := add(Reconciled{Cluster: "here", Watermark: Watermark{"b", 3}, Statuses: Watermark{"a", 4}}, "user/test", 1); err != nil {
		t.Fatal(err)
	}
	v := NewView()
	if _, err := log.Replay(context.WithoutCancel(t.Context()), 0, v.Apply); err != nil {
		t.Fatal(err)
	}
	state, seq := v.State()
	if diff := cmp.Diff(State{Cluster: "here", Accepted: []Watermark{{"b", 3}, {"a", 4}}, Reconciled: []string{at.Format(time.RFC3339Nano)}}, state); diff != "" || seq != 2 {
		t.Errorf("state at sequence %d (-want +got):\n%s", seq, diff)
	}
}
