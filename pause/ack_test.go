package pause_test

import (
	"strings"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

func ref(group, kind string) object.Ref {
	return object.Ref{Group: group, Kind: kind, Namespace: "fleet", Name: "x"}
}

func TestJudge(t *testing.T) {
	machine := object.Observed{Ref: ref(object.CoreGroup, "Machine"), UID: "u", ClusterName: "a"}
	cluster := object.Observed{Ref: ref(object.CoreGroup, "Cluster"), UID: "u", Cluster: &object.ClusterFacts{Paused: true}}
	infra := object.Observed{Ref: ref("infrastructure.cluster.x-k8s.io", "DevMachine"), UID: "u", ClusterName: "a"}
	with := func(o object.Observed, change func(*object.Observed)) object.Observed {
		if o.Cluster != nil {
			facts := *o.Cluster
			o.Cluster = &facts
		}
		change(&o)
		return o
	}
	says := func(o object.Observed, paused object.ConditionStatus) object.Observed {
		return with(o, func(o *object.Observed) { o.Paused = paused })
	}
	topology := func(said object.ConditionStatus) object.Observed {
		return with(says(cluster, object.True), func(o *object.Observed) { o.Cluster.ClassName, o.TopologyPaused = "base", said })
	}
	owned := func(group string) object.Observed {
		return with(infra, func(o *object.Observed) { o.Owners = []object.Owner{{Ref: ref(group, "Owner")}} })
	}
	user := ref("infrastructure.cluster.x-k8s.io", "Metal3Machine")
	host := object.Observed{Ref: ref("metal3.io", "BareMetalHost"), UID: "u", Consumer: &user}
	speaks := pause.Context{KindReportsPaused: true}
	after := func(d time.Duration) pause.Context { return pause.Context{KindReportsPaused: true, SincePause: d} }
	before := func(said object.ConditionStatus) pause.Baseline { return pause.Baseline{UID: "u", Paused: said} }
	held := pause.Baseline{UID: "u", Paused: object.True, AlreadyPaused: true}

	for _, c := range []struct {
		name   string
		before pause.Baseline
		now    object.Observed
		in     pause.Context
		how    pause.Signal // "" is not acknowledged
		why    string
		touch  bool
	}{
		{"the condition turned True", before(object.False), says(machine, object.True), speaks, pause.ByCondition, "", false},
		{"it appeared as True", before(object.Absent), says(machine, object.True), speaks, pause.ByCondition, "", false},
		{"it turned from Unknown", before(object.Unknown), says(machine, object.True), speaks, pause.ByCondition, "", false},
		{"it still says False", before(object.False), says(machine, object.False), speaks, "", "False", true},
		{"it says Unknown", before(object.False), says(machine, object.Unknown), speaks, "", "Unknown", true},

		{"True before for no cause", before(object.True), says(machine, object.True), after(29 * time.Second), "", "until it settles", true},
		{"it did not change", before(object.True), says(machine, object.True), after(pause.SettleTime), pause.Settled, "", false},
		{"it did not keep still", before(object.True), says(machine, object.False), after(time.Hour), "", "False", true},
		{"True before for the user's cause", held, says(machine, object.True), speaks, pause.AlreadyPaused, "", false},
		{"the user's cause holds but it says False", held, says(machine, object.False), speaks, "", "False", true},
		{"held by the user, who speaks only now", pause.Baseline{UID: "u", AlreadyPaused: true}, says(machine, object.True), speaks, pause.ByCondition, "", false},

		{"block-move has precedence", before(object.False), with(says(machine, object.True), func(o *object.Observed) { o.BlockMove = true }), speaks, "", object.BlockMoveAnnotation, false},
		{"block-move on a silent kind", before(object.Absent), with(infra, func(o *object.Observed) { o.BlockMove = true }), pause.Context{}, "", object.BlockMoveAnnotation, false},

		{"the topology controller is silent yet", before(object.False), topology(object.False), speaks, "", "TopologyReconciled", true},
		{"the topology controller is paused", before(object.False), topology(object.True), speaks, pause.ByCondition, "", false},
		{"an older Cluster API has no such condition", before(object.False), topology(object.Absent), speaks, pause.ByCondition, "", false},
		{"no topology", before(object.False), with(says(cluster, object.True), func(o *object.Observed) { o.TopologyPaused = object.False }), speaks, pause.ByCondition, "", false},
		{"topology says so but the Cluster does not", before(object.False), with(topology(object.True), func(o *object.Observed) { o.Paused = object.False }), speaks, "", "False", true},

		{"another object of the name, paused", pause.Baseline{UID: "old", Paused: object.True}, says(machine, object.True), speaks, pause.ByCondition, "", false},
		{"another object of the name, of a held one", pause.Baseline{UID: "old", AlreadyPaused: true}, says(machine, object.False), speaks, "", "False", true},
		{"it came after the pause", pause.Baseline{}, says(machine, object.True), speaks, pause.ByCondition, "", false},
		{"it came after the pause and is silent", pause.Baseline{}, machine, speaks, "", "no condition", true},

		{"a kind that never speaks", before(object.Absent), infra, pause.Context{}, pause.Assumed, "", false},
		{"a kind that never speaks, owned", before(object.Absent), owned(object.CoreGroup), pause.Context{}, pause.Assumed, "", false},
		{"a host that its provider has not paused", before(object.Absent), host, pause.Context{}, "", object.HostPausedAnnotation, false},
		{"its definition has block-move", before(object.Absent), with(infra, func(o *object.Observed) { o.BlockMove, o.KindBlocksMove = true, true }), pause.Context{}, "", "CustomResourceDefinition", false},
		{"a host that its provider has paused", before(object.Absent), with(host, func(o *object.Observed) { o.HostPaused = true }), pause.Context{}, pause.Assumed, "", false},
		{"a host that no machine uses", before(object.Absent), with(host, func(o *object.Observed) { o.Consumer = nil }), pause.Context{}, pause.Assumed, "", false},
		{"inert: no Machine has taken it up", before(object.Absent), infra, speaks, pause.ThroughOwner, "", false},
		{"inert below a control plane", before(object.Absent), owned("controlplane.cluster.x-k8s.io"), speaks, pause.ThroughOwner, "", false},
		{"a Machine has it: it will speak", before(object.Absent), owned(object.CoreGroup), speaks, "", "no condition", true},
		{"of no cluster: no controller acknowledges", before(object.Absent), with(infra, func(o *object.Observed) { o.ClusterName = "" }), speaks, "", "no condition", true},
		{"a core object is never inert", before(object.Absent), machine, speaks, "", "no condition", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := pause.EvaluateObject(c.before, c.now, c.in)
			if v.Acknowledged != (c.how != "") || v.How != c.how || v.Touch != c.touch {
				t.Errorf("Judge = %+v, want How %q, Touch %t", v, c.how, c.touch)
			}
			if (v.Reason == "") != v.Acknowledged || !strings.Contains(v.Reason, c.why) {
				t.Errorf("Why = %q, want it to contain %q", v.Reason, c.why)
			}
		})
	}
}

func TestRoots(t *testing.T) {
	for _, c := range []struct {
		ref           object.Ref
		root, byField bool
	}{
		{ref(object.CoreGroup, "Cluster"), true, true},
		{ref(object.CoreGroup, "ClusterClass"), true, false},
		{ref(object.AddonsGroup, "ClusterResourceSet"), true, false},
		{ref(object.AddonsGroup, "ClusterResourceSetBinding"), false, false},
		{ref(object.CoreGroup, "Machine"), false, false},
		{ref("other.io", "Cluster"), false, false},
		{ref("", "Cluster"), false, false},
	} {
		if got := pause.IsRoot(c.ref); got != c.root {
			t.Errorf("IsRoot(%s) = %t", c.ref, got)
		}
		if got := pause.IsCluster(c.ref); got != c.byField {
			t.Errorf("IsCluster(%s) = %t", c.ref, got)
		}
	}
	for _, c := range []struct {
		name  string
		o     object.Observed
		found bool
	}{
		{"a Cluster by its field", object.Observed{Cluster: &object.ClusterFacts{Paused: true}}, true},
		{"the annotation on a Cluster is not its field", object.Observed{Cluster: &object.ClusterFacts{}, PausedByUser: true}, false},
		{"a class by its annotation", object.Observed{PausedByUser: true}, true},
		{"neither", object.Observed{}, false},
	} {
		if got := pause.RootOf(c.o).Found; got != c.found {
			t.Errorf("%s: Found = %t", c.name, got)
		}
	}
}

func TestBroken(t *testing.T) {
	says := func(paused object.ConditionStatus) object.Observed { return object.Observed{Paused: paused} }
	for _, c := range []struct {
		how  pause.Signal
		now  object.Observed
		want string
	}{
		{pause.ByCondition, says(object.True), ""},
		{pause.ByCondition, says(object.False), "condition Paused is False"},
		{pause.AlreadyPaused, says(object.Unknown), "condition Paused is Unknown"},
		{pause.Settled, says(object.Absent), "its condition Paused was removed"},
		{pause.ThroughOwner, says(object.Absent), ""},
		{pause.ThroughOwner, says(object.True), ""},
		{pause.Assumed, says(object.False), "condition Paused is False"},
		{pause.Assumed, object.Observed{Consumer: &object.Ref{Kind: "Metal3Machine"}}, "Metal3's provider has not set annotation " + object.HostPausedAnnotation + " on it"},
		{pause.Assumed, object.Observed{BlockMove: true}, "its provider blocks it again with annotation " + object.BlockMoveAnnotation},
	} {
		if got := pause.InvalidReason(c.how, c.now); got != c.want {
			t.Errorf("Broken(%s) with condition Paused %q = %q, want %q", c.how, c.now.Paused, got, c.want)
		}
	}
}
