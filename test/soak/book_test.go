package soak

import (
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
)

// written returns a function that folds a log with a remediation into a Book, up to a commit.
func written(t *testing.T) func(until uint64) *Book {
	t.Helper()
	log := logtest.Open(t)
	owner := remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "prod-cp", UID: "12345678-9", Cluster: "prod"}
	victim, other := remediator.Subject{Name: "m1", UID: "1"}, remediator.Subject{Name: "m2", UID: "2"}
	catalog, seq := remediator.NewCatalog(), uint64(0)
	for _, fact := range []remediator.Event{
		remediator.Registered{Owner: owner},
		remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy, Source: remediator.FromPolicy},
		remediator.SurgeRequested{Machine: victim, Method: remediator.Surge, From: 3, To: 5, Baseline: []remediator.Subject{victim, other}},
		remediator.VictimGone{},
		remediator.Succeeded{},
	} {
		e, err := catalog.Encode(fact)
		if err != nil {
			t.Fatal(err)
		}
		e.Time, e.Actor = time.Unix(int64(seq), 0), "daemon/test"
		c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner.ID()}, Expected: seq, Events: []eventlog.Event{e}}
		c.ID = c.IDFor("daemon/test")
		receipt, err := log.Append(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		seq = receipt.Seq
	}
	return func(until uint64) *Book {
		b := NewBook("blue")
		b.Unhealthy = func(machine string, _ time.Time) bool { return machine == "m2" }
		_, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error {
			if r.Seq > until {
				return nil
			}
			lines, err := b.Apply(r)
			if err == nil && len(lines) != 1 {
				t.Errorf("commit %d: lines = %q, want one", r.Seq, lines)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func TestBook(t *testing.T) {
	read := written(t)
	open := read(4)
	if len(open.Remedies) != 1 || len(open.Open()) == 0 {
		t.Fatalf("remedies = %+v, open = %v, want one remedy that is open", open.Remedies, open.Open())
	}
	r := open.Remedies[0]
	if r.Cluster != "fleet/prod" || r.Victim != "m1" || len(r.Baseline) != 2 || !r.Ended.IsZero() || !r.Spurious {
		t.Errorf("remedy = %+v", r)
	}
	over := read(5)
	if over.Remedies[0].Ended.IsZero() || len(over.Open()) > 0 {
		t.Errorf("remedies = %+v, open = %v, want none open", over.Remedies, over.Open())
	}
}

func TestSame(t *testing.T) {
	read := written(t)
	if err := Same(read(5), read(5)); err != nil {
		t.Error(err)
	}
	if err := Same(read(5), read(4)); err == nil {
		t.Error("Same with a missing commit = nil, want an error")
	}
	altered := read(5)
	altered.Digest[0]++
	if err := Same(read(5), altered); err == nil {
		t.Error("Same with a different commit = nil, want an error")
	}
	forgotten := read(5)
	forgotten.Remedies = nil
	if err := Same(read(5), forgotten); err == nil {
		t.Error("Same with a different state = nil, want an error")
	}
}
