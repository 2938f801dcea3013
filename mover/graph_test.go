package mover_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestSelect works out selections in small worlds. A world has a line for each object:
//
//	Kind/name [owners=Kind/name,...] [cluster=a] [class=base] [binds=a] [consumer=Kind/name] [move]
//	[hierarchy] [reserved] [refers=Kind/name,...] [pool=Kind/name]
//	[files=secret,...]
//
// "gone:Kind/name" is an owner that is not there. The answer has a line for each object that moves, by level.
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
			case "select":
				sel := mover.Selection{Namespace: "fleet", All: d.HasArg("all")}
				if !sel.All {
					d.ScanArgs(t, "clusters", &sel.Clusters)
				}
				return answer(mover.Select(world, sel))
			case "remedies":
				sel := mover.Selection{Namespace: "fleet", All: d.HasArg("all")}
				if !sel.All {
					d.ScanArgs(t, "clusters", &sel.Clusters)
				}
				return remedies(mover.Select(world, sel))
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
		o.Binds = r.Name
	}
	if name, ok := option(f, "binds"); ok {
		o.Binds = name
	}
	_, o.Movable = option(f, "move")
	_, o.Hierarchy = option(f, "hierarchy")
	_, o.Reserved = option(f, "reserved")
	if list, ok := option(f, "refers"); ok {
		for _, w := range strings.Split(list, ",") {
			o.References = append(o.References, object.Reference{Field: "spec.ref", Ref: ref(t, w)})
		}
	}
	if list, ok := option(f, "files"); ok {
		for _, w := range strings.Split(list, ",") {
			o.Files = append(o.Files, object.Reference{Field: "spec.files[0].contentFrom", Ref: object.Ref{Kind: "Secret", Namespace: r.Namespace, Name: w}})
		}
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
	}
	return o
}

func answer(m mover.Members) string {
	var b strings.Builder
	for _, o := range m.Objects {
		line := strings.Repeat("  ", o.Level) + word(o.Ref)
		if o.ClusterOf != "" && o.Ref.Kind != "Cluster" {
			line += " of " + o.ClusterOf
		}
		if len(o.Within) > 0 {
			var owners []object.Ref
			for _, w := range o.Within {
				owners = append(owners, w.Ref)
			}
			line += " owned by " + words(owners)
		}
		if o.Keep != "" {
			line += "; stays too: " + o.Keep
		}
		bullet(&b, "%s", line)
	}
	for _, w := range m.Left {
		bullet(&b, "left: %s: %s", word(w.Ref), w.Why)
	}
	for _, w := range m.Files {
		bullet(&b, "files: %s: %s", word(w.Ref), w.Why)
	}
	for _, w := range m.Dropped {
		bullet(&b, "dropped: %s: %s", word(w.Ref), w.Why)
	}
	for _, f := range slices.Concat(m.Findings, m.Addresses) {
		bullet(&b, "%s: %s: %s", f.Severity, f.Field, f.Message)
	}
	return b.String()
}

// remedies are those for what is left, by object.
func remedies(m mover.Members) string {
	var b strings.Builder
	for _, f := range slices.Concat(m.Findings, m.Stays) {
		if slices.ContainsFunc(m.Left, func(w mover.Wait) bool { return w.Ref.String() == f.Field }) {
			bullet(&b, "%s: %s -> %s", f.Severity, f.Field, f.Remedy)
		}
	}
	return b.String()
}

// TestSelectProperties draws worlds with any owners whatever, circles and all.
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
		if a, b := answer(m), answer(again); a != b {
			t.Fatalf("another order of the same world gives another answer:\n%s\n%s", a, b)
		}
		level := make(map[object.Ref]int)
		for _, o := range m.Objects {
			level[o.Ref] = o.Level
		}
		left := make(map[object.Ref]bool)
		for _, w := range m.Left {
			left[w.Ref] = true
			if w.Why == "" {
				t.Fatalf("%s is left for no reason", w.Ref)
			}
		}
		for _, o := range m.Objects {
			if left[o.Ref] {
				t.Fatalf("%s both moves and is left", o.Ref)
			}
			for _, owner := range o.Within {
				at, ok := level[owner.Ref]
				if !ok {
					t.Fatalf("%s moves with an owner that does not move: %s", o.Ref, owner.Ref)
				}
				if at >= o.Level {
					t.Fatalf("%s (level %d) does not come after its owner %s (level %d)", o.Ref, o.Level, owner.Ref, at)
				}
			}
			if o.Ref.Kind == "Cluster" && (o.Keep != "" || o.Ref.Namespace != "fleet" || !sel.All && o.Ref.Name != "a" && o.Ref.Name != "c") {
				t.Fatalf("%s moves; stays too: %q", o.Ref, o.Keep)
			}
		}
		for i, o := range mover.Levels(items(m)) {
			for _, item := range o {
				if item.Level != i {
					t.Fatalf("%s of level %d is at %d", item.Ref, item.Level, i)
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
