package mover_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestSelect computes selections in small worlds. A world has a line for each object:
//
//	Kind/name [owners=Kind/name,...] [cluster=a] [class=base] [binds=a] [consumer=Kind/name] [move]
//	[hierarchy] [reserved] [refers=Kind/name,...] [pool=Kind/name]
//	[replicas=1] [controlplane=Kind/name] [initialized] [{spec: ...}]
//
// "gone:Kind/name" is an owner that does not exist. The output has a line for each object that moves, by level.
// "collect" prints what the garbage collector removes once the selection has moved; workloads are of kinds that do not
// move.
func TestSelect(t *testing.T) {
	datadriven.Walk(t, "testdata/graph", func(t *testing.T, path string) {
		var world []object.Observed
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world":
				world = nil
				for _, f := range lines(d) {
					world = append(world, observed(t, f))
				}
				return ""
			case "select", "collect":
				sel := mover.Selection{Namespace: "fleet", All: d.HasArg("all")}
				if !sel.All {
					d.ScanArgs(t, "clusters", &sel.Clusters)
				}
				if d.Cmd == "select" {
					return membersText(mover.Select(world, sel))
				}
				moves := slices.DeleteFunc(slices.Clone(world), func(o object.Observed) bool {
					return slices.Contains([]string{"StatefulSet", "Deployment", "Pod", "Service"}, o.Ref.Kind)
				})
				return lostText(mover.GarbageCollected(mover.Select(moves, sel).Objects, world))
			case "remedies":
				sel := mover.Selection{Namespace: "fleet", All: d.HasArg("all")}
				if !sel.All {
					d.ScanArgs(t, "clusters", &sel.Clusters)
				}
				return remediesText(mover.Select(world, sel))
			default:
				d.Fatalf(t, "no such command: %s", d.Cmd)
				return ""
			}
		})
	})
}

func observed(t testing.TB, f []string) object.Observed {
	t.Helper()
	r := ref(t, f[0])
	o := object.Observed{Ref: r, Version: "v1", UID: types.UID(r.String())}
	if i := slices.IndexFunc(f, func(w string) bool { return strings.HasPrefix(w, "{") }); i >= 0 {
		whole := observedContent(t, r, strings.Join(f[i:], " "))
		o.References, o.Local, o.Consumer = whole.References, whole.Local, whole.Consumer
		f = f[:i]
	}
	if list, ok := option(f, "owners"); ok {
		for _, w := range strings.Split(list, ",") {
			name, gone := strings.CutPrefix(w, "gone:")
			owner := ref(t, name)
			owned := object.Owner{Ref: owner, Version: "v1", UID: types.UID(owner.String())}
			if gone {
				owned.UID = "nobody"
			}
			o.Owners = append(o.Owners, owned)
		}
	}
	o.ClusterName, _ = option(f, "cluster")
	if r.Kind == "ClusterResourceSetBinding" {
		o.BoundCluster = r.Name
	}
	if name, ok := option(f, "binds"); ok {
		o.BoundCluster = name
	}
	_, o.Movable = option(f, "move")
	_, o.Hierarchy = option(f, "hierarchy")
	_, o.Reserved = option(f, "reserved")
	if list, ok := option(f, "refers"); ok {
		for _, w := range strings.Split(list, ",") {
			o.References = append(o.References, object.Reference{Field: "spec.ref", Ref: ref(t, w)})
		}
	}
	if n, ok := option(f, "replicas"); ok {
		o.Replicas, _ = strconv.ParseInt(n, 10, 64)
	}
	if name, ok := option(f, "consumer"); ok {
		consumer := ref(t, name)
		o.Consumer = &consumer
	}
	if name, ok := option(f, "pool"); ok {
		pool := ref(t, name)
		o.Pool = &pool
	}
	if r.Kind == "Cluster" {
		o.Cluster = &object.ClusterFacts{}
		if class, ok := option(f, "class"); ok {
			c := ref(t, "ClusterClass/"+class)
			o.Cluster.ClassName, o.Cluster.ClassNamespace = c.Name, c.Namespace
		}
		if name, ok := option(f, "controlplane"); ok {
			o.Cluster.ControlPlane = ref(t, name)
		}
		_, o.Cluster.ControlPlaneInitialized = option(f, "initialized")
	}
	if r.Kind == "Machine" {
		o.Machine = &object.MachineFacts{}
	}
	return o
}

// referencesOf returns the references of an object with the given content.
func referencesOf(t failer, r object.Ref, content string) []object.Reference {
	t.Helper()
	return observedContent(t, r, content).References
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// observedContent returns an object with the given YAML content.
func observedContent(t failer, r object.Ref, content string) object.Observed {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(content), &u.Object); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: r.Group, Version: "v1", Kind: r.Kind})
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return object.Observe(u)
}

func lostText(lost []mover.LostObject) string {
	var b strings.Builder
	for _, l := range lost {
		line := refText(l.Ref) + " of " + refText(l.Owner)
		if len(l.Dependents) > 0 {
			line += ", and " + refTexts(l.Dependents)
		}
		bullet(&b, "%s", line)
	}
	return b.String()
}

// TestCollectedIsWhatTheGarbageCollectorRemoves compares GarbageCollected with a simulated garbage
// collector, which removes each object with owners if none of them exists.
func TestCollectedIsWhatTheGarbageCollectorRemoves(t *testing.T) {
	collect := func(there map[types.UID]object.Observed) {
		for again := true; again; {
			again = false
			for uid, o := range there {
				alive := func(owner object.Owner) bool { _, ok := there[owner.UID]; return ok }
				if len(o.Owners) > 0 && !slices.ContainsFunc(o.Owners, alive) {
					delete(there, uid)
					again = true
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "objects")
		there := make(map[types.UID]object.Observed)
		for i := range n {
			r := object.Ref{Kind: "Secret", Namespace: "fleet", Name: string(rune('a' + i))}
			o := object.Observed{Ref: r, UID: types.UID(r.Name)}
			for range rapid.IntRange(0, 2).Draw(t, "owners") {
				o.Owners = append(o.Owners, object.Owner{UID: types.UID(rune('a' + rapid.IntRange(0, n).Draw(t, "owner")))})
			}
			there[o.UID] = o
		}
		collect(there)
		var seen []object.Observed
		var members []mover.Member
		for _, o := range there {
			seen = append(seen, o)
		}
		slices.SortFunc(seen, func(a, b object.Observed) int { return object.Compare(a.Ref, b.Ref) })
		for _, o := range seen {
			switch rapid.IntRange(0, 3).Draw(t, "moves") {
			case 0:
				members = append(members, mover.Member{Observed: o})
				delete(there, o.UID)
			case 1:
				members = append(members, mover.Member{Observed: o, KeepReason: "it is shared"})
			}
		}
		collect(there)
		want := len(seen) - len(there)
		for _, m := range members {
			if m.KeepReason == "" {
				want--
			}
		}
		got := 0
		for _, l := range mover.GarbageCollected(members, seen) {
			for _, r := range append(l.Dependents, l.Ref) {
				if _, ok := there[types.UID(r.Name)]; ok {
					t.Fatalf("%s is reported as collected but stays", r)
				}
				got++
			}
		}
		if got != want {
			t.Fatalf("Collected returned %d objects, want %d", got, want)
		}
	})
}

func membersText(m mover.Members) string {
	var b strings.Builder
	for _, o := range m.Objects {
		line := strings.Repeat("  ", o.Level) + refText(o.Ref)
		if o.OwningCluster != "" && o.Ref.Kind != "Cluster" {
			line += " of " + o.OwningCluster
		}
		if len(o.MemberOwners) > 0 {
			var owners []object.Ref
			for _, w := range o.MemberOwners {
				owners = append(owners, w.Ref)
			}
			line += " owned by " + refTexts(owners)
		}
		if o.KeepReason != "" {
			line += "; stays too: " + o.KeepReason
		}
		bullet(&b, "%s", line)
	}
	for _, w := range m.Excluded {
		bullet(&b, "left: %s: %s", refText(w.Ref), w.Reason)
	}
	for _, w := range m.Missing {
		bullet(&b, "missing: %s: %s", refText(w.Ref), w.Reason)
	}
	for _, w := range m.Hosted {
		bullet(&b, "hosted: %s: %s", refText(w.Ref), w.Reason)
	}
	for _, w := range m.DroppedOwners {
		bullet(&b, "dropped: %s: %s", refText(w.Ref), w.Reason)
	}
	for _, f := range slices.Concat(m.Findings, m.AddressFindings, m.InUseFindings) {
		bullet(&b, "%s: %s: %s", f.Severity, f.Field, f.Message)
	}
	return b.String()
}

// remediesText lists the remedies for objects that are left, by object.
func remediesText(m mover.Members) string {
	var b strings.Builder
	for _, f := range slices.Concat(m.Findings, m.ExclusionWarnings) {
		left := slices.ContainsFunc(m.Excluded, func(w mover.ObjectReason) bool { return w.Ref.String() == f.Field })
		if left || strings.Contains(f.Message, ", which would not be moved: ") {
			bullet(&b, "%s: %s -> %s", f.Severity, f.Field, f.Remedy)
		}
	}
	return b.String()
}

// TestSelectProperties checks Select on worlds with arbitrary owners, including cycles.
func TestSelectProperties(t *testing.T) {
	kinds := []string{"Cluster", "Machine", "MachineSet", "Secret", "DevMachine", "ClusterClass", "DevMachineTemplate", "Identity"}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "objects")
		world := make([]object.Observed, n)
		for i := range world {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			namespace := rapid.SampledFrom([]string{"fleet", "fleet", "fleet", "other"}).Draw(t, "namespace")
			if kind == "Identity" {
				namespace = ""
			}
			r := object.Ref{Group: groupOf(kind), Kind: kind, Namespace: namespace, Name: string(rune('a' + i))}
			world[i] = object.Observed{
				Ref: r, Version: "v1", UID: types.UID(r.String()),
				ClusterName: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "cluster"),
				Movable:     rapid.IntRange(0, 9).Draw(t, "movable") == 0,
				Hierarchy:   rapid.IntRange(0, 5).Draw(t, "hierarchy") == 0,
			}
			if kind == "Cluster" {
				world[i].Cluster = &object.ClusterFacts{}
			}
		}
		for i := range world {
			for range rapid.IntRange(0, 2).Draw(t, "owners") {
				owner := world[rapid.IntRange(0, n-1).Draw(t, "owner")]
				uid := owner.UID
				if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
					uid = "nobody"
				}
				world[i].Owners = append(world[i].Owners, object.Owner{Ref: owner.Ref, Version: "v1", UID: uid})
			}
			if c := world[rapid.IntRange(0, n-1).Draw(t, "class")].Ref; world[i].Cluster != nil && c.Kind == "ClusterClass" {
				world[i].Cluster.ClassName, world[i].Cluster.ClassNamespace = c.Name, c.Namespace
			}
		}
		sel := mover.Selection{Namespace: "fleet", All: rapid.Bool().Draw(t, "all")}
		if !sel.All {
			sel.Clusters = []string{"a", "c"}
		}
		m := mover.Select(world, sel)
		again := mover.Select(rapid.Permutation(world).Draw(t, "order"), sel)
		if a, b := membersText(m), membersText(again); a != b {
			t.Fatalf("Select depends on the order of its input:\n%s\n%s", a, b)
		}
		level := make(map[object.Ref]int)
		for _, o := range m.Objects {
			level[o.Ref] = o.Level
		}
		left := make(map[object.Ref]bool)
		for _, w := range m.Excluded {
			left[w.Ref] = true
			if w.Reason == "" {
				t.Fatalf("%s is left without a reason", w.Ref)
			}
		}
		for _, o := range m.Objects {
			if left[o.Ref] {
				t.Fatalf("%s both moves and is left", o.Ref)
			}
			for _, owner := range o.MemberOwners {
				at, ok := level[owner.Ref]
				if !ok {
					t.Fatalf("%s moves with an owner that does not move: %s", o.Ref, owner.Ref)
				}
				if at >= o.Level {
					t.Fatalf("%s (level %d) is not after its owner %s (level %d)", o.Ref, o.Level, owner.Ref, at)
				}
			}
			if o.Ref.Kind == "Cluster" && (o.KeepReason != "" || o.Ref.Namespace != "fleet" || !sel.All && o.Ref.Name != "a" && o.Ref.Name != "c") {
				t.Fatalf("unexpected move of %s, kept because %q", o.Ref, o.KeepReason)
			}
		}
		for i, o := range mover.Levels(items(m)) {
			for _, item := range o {
				if item.Level != i {
					t.Fatalf("%s of level %d is at level %d", item.Ref, item.Level, i)
				}
			}
		}
	})
}

func items(m mover.Members) []mover.Item {
	out := make([]mover.Item, 0, len(m.Objects))
	for _, o := range m.Objects {
		out = append(out, mover.ItemOf(o, ""))
	}
	return out
}
