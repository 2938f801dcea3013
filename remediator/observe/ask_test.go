package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestDefragment checks that a member is defragmented only through a connection to the member itself, and not while
// another member is silent or a learner.
func TestDefragment(t *testing.T) {
	for _, c := range []struct {
		name   string
		open   []string
		breaks func(*workload)
		size   int64 // of the database when it was decided
		left   int64 // of the database afterwards
		why    string
	}{
		{name: "all is well", size: 400, left: 1},
		{name: "it is smaller than it was", size: 401, left: 400},
		{name: "kubelet dead, client port open", open: []string{"b"}, breaks: func(tn *workload) { tn.node("b").kubelet = connectionRefused }, size: 400, left: 1},
		{name: "kubelet dead", breaks: func(tn *workload) { tn.node("b").kubelet = connectionRefused }, size: 400, left: 400, why: "it can only be reached by etcdctl in etcd-"},
		{name: "another is down", breaks: func(tn *workload) { tn.node("c").answers.Stop() }, size: 400, left: 400, why: "the member on c is a learner, or does not answer"},
		{name: "another is a learner", breaks: func(tn *workload) { tn.node("c").learner = true }, size: 400, left: 400, why: "the member on c is a learner"},
		{name: "it takes too long", breaks: func(tn *workload) { tn.node("b").blockDefragment = func() {} }, size: 400, left: 400, why: "it did not answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tn := newTenant(t, "a", "b", "c")
			tn.node("b").size = 400
			if c.breaks != nil {
				c.breaks(tn)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if tn.node("b").blockDefragment != nil {
				tn.node("b").blockDefragment = cancel
			}
			err := tn.dialer(c.open...).defragment(ctx, []string{"a", "b", "c"}, "b", c.size)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("defragment = %v", err)
			}
			if size := tn.node("b").size; size != c.left {
				t.Errorf("database size = %d", size)
			}
		})
	}
}

// TestDisarm checks that the alarm is disarmed for all members that raised it, through one that answers.
func TestDisarm(t *testing.T) {
	tn := newTenant(t, "a", "b", "c")
	tn.node("a").kubelet, tn.node("a").full, tn.node("b").full = connectionRefused, true, true
	if err := tn.dialer().disarm(t.Context(), []string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	if tn.node("a").full || tn.node("b").full {
		t.Error("the alarm is still raised")
	}
	for _, n := range tn.nodes {
		n.kubelet = connectionRefused
	}
	if err := tn.dialer().disarm(t.Context(), []string{"a", "b", "c"}); err == nil {
		t.Error("disarm succeeded although no member can be reached")
	}
}

// TestNothingWithoutTheLease checks that a process that may have lost the Lease while it read the members of etcd
// changes nothing there.
func TestNothingWithoutTheLease(t *testing.T) {
	nodes := []string{"a", "b", "c"}
	for name, change := range map[string]func(context.Context, *dialer) error{
		"defragment":  func(ctx context.Context, d *dialer) error { return d.defragment(ctx, nodes, "b", 1) },
		"disarm":      func(ctx context.Context, d *dialer) error { return d.disarm(ctx, nodes) },
		"move leader": func(ctx context.Context, d *dialer) error { return d.moveLeader(ctx, nodes, "c") },
	} {
		t.Run(name, func(t *testing.T) {
			tn := newTenant(t, nodes...)
			tn.node("b").size, tn.node("b").full = 400, true
			d := tn.dialer()
			d.cluster = readOnlyClusterAt(tn.api.URL, func() error { return errors.New("the Lease has passed on") })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := change(ctx, d); err == nil || !strings.Contains(err.Error(), "not sent: the Lease has passed on") {
				t.Errorf("error = %v, want that the Lease was lost", err)
			}
			if b := tn.node("b"); b.size != 400 || !b.full || tn.leaderID() != tn.node("a").id {
				t.Errorf("member was changed: %+v", b)
			}
		})
	}
}
