package mover_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func TestAssess(t *testing.T) {
	type copied struct {
		ref    object.Ref
		origin types.UID
	}
	whole := func(name string) mover.Member {
		return mover.Member{Observed: object.Observed{Ref: ref(t, name), UID: uid(ref(t, name))}}
	}
	paused := func(name string) mover.Member { o := whole(name); o.MoveID = "go"; return o }
	released := func(name string) mover.Member { o := whole(name); o.Released = true; return o }
	emptying := func(name string) mover.Member { o := paused(name); o.Emptying = true; return o }
	replaced := func(name string) mover.Member { o := whole(name); o.UID = "another"; return o }
	copyOf := func(name string) copied { return copied{ref(t, name), uid(ref(t, name))} }
	shared := func(name string) copied { return copied{ref: ref(t, name)} }
	type (
		src = []mover.Member
		dst = []copied
	)
	for _, c := range []struct {
		name   string
		source src
		target dst
		want   mover.Verdict
		names  string
	}{
		{"no trace", src{whole("Cluster/a"), whole("Machine/a-1")}, nil, mover.NothingStarted, ""},
		{"paused", src{paused("Cluster/a"), whole("Machine/a-1")}, nil, mover.CanRollBack, "a"},
		{"some copies", src{paused("Cluster/a"), whole("Machine/a-1")}, dst{copyOf("Cluster/a")}, mover.CanRollBack, ""},
		{"all copies", src{paused("Cluster/a"), whole("Machine/a-1")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.CanRollBack, ""},
		{"unpaused before its copies were removed", src{whole("Cluster/a")}, dst{copyOf("Cluster/a")}, mover.CanRollBack, ""},
		{"one deleted", src{paused("Cluster/a")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.MustRollForward, "a-1"},
		{"one released", src{paused("Cluster/a"), released("Machine/a-1")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.MustRollForward, "a-1"},
		{"all deleted", nil, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.MustRollForward, "a"},
		{"shared and retained", src{paused("Cluster/a")}, dst{copyOf("Cluster/a"), shared("ClusterClass/k")}, mover.CanRollBack, ""},
		{"one deleted, one without a copy", src{paused("Cluster/a"), whole("Secret/s")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.NeedsOperator, "no copy"},
		{"released without a copy", src{paused("Cluster/a"), released("Machine/a-1")}, dst{copyOf("Cluster/a")}, mover.NeedsOperator, "a-1"},
		{"begun to be emptied", src{emptying("Cluster/a"), whole("Machine/a-1")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.MustRollForward, ""},
		{"begun to be emptied, without copies", src{emptying("Cluster/a")}, nil, mover.NeedsOperator, "no copy"},
		{"made again", src{replaced("Cluster/a")}, dst{copyOf("Cluster/a"), copyOf("Machine/a-1")}, mover.NeedsOperator, "another object"},
		{"nothing anywhere", nil, nil, mover.NeedsOperator, ""},
	} {
		target := make(map[object.Ref]types.UID)
		for _, o := range c.target {
			target[o.ref] = o.origin
		}
		got := mover.Assess(c.source, target, "go", "")
		message, next := got.Explain(mover.Spec{Namespace: "fleet", Name: "go"})
		if got.Verdict != c.want || !strings.Contains(message+evidenceText(got.Evidence), c.names) || next == "" {
			t.Errorf("%s: verdict %s (message %q, next %q), want %s", c.name, got.Verdict, message, next, c.want)
		}
	}
}

func evidenceText(list []mover.ObjectReason) string {
	var s strings.Builder
	for _, w := range list {
		s.WriteString(" " + w.Ref.String() + " " + w.Reason)
	}
	return s.String()
}

// TestStatusNamesTheLogOfTheMarks checks that the status names the log in the annotations. A log may be lost again
// while a move whose log was lost is resolved, and the third log must know which annotations to look for.
func TestStatusNamesTheLogOfTheMarks(t *testing.T) {
	var s mover.State
	s.Apply(mover.Requested{Home: mover.Home{Log: "second"}}, time.Time{})
	s.Apply(mover.LogLost{Log: "first"}, time.Time{})
	s.Apply(mover.Resolved{Direction: mover.Back}, time.Time{})
	if got := mover.Status(&s).LogID; got != "first" {
		t.Errorf("status.logID = %q, want \"first\", which the annotations name", got)
	}
	s.Apply(mover.TraceMissing{}, time.Time{})
	if got := mover.Status(&s).LogID; got != "second" {
		t.Errorf("status.logID = %q after the move started again, want \"second\"", got)
	}
}
