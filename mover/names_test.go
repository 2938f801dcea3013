package mover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// referencedObject is a reference from one object to another.
type referencedObject struct{ owner, target object.Ref }

// sharingObjects draws two Clusters in one namespace and one in another, whose objects own and reference shared objects
// as those of providers do.
func sharingObjects(t *rapid.T) (world []object.Observed, names []referencedObject) {
	contents := make(map[object.Ref][]string)
	add := func(kind, namespace, name, cluster string, owners ...object.Ref) object.Ref {
		r := object.Ref{Group: groupOf(kind), Kind: kind, Namespace: namespace, Name: name}
		o := object.Observed{Ref: r, Version: "v1", UID: types.UID(r.String()), ClusterName: cluster}
		for _, owner := range owners {
			o.Owners = append(o.Owners, object.Owner{Ref: owner, Version: "v1", UID: types.UID(owner.String())})
		}
		if kind == "Cluster" {
			o.Cluster = &object.ClusterFacts{}
		}
		world = append(world, o)
		return r
	}
	var infra, namers, things []object.Ref
	for _, c := range []string{"a", "b", "z"} {
		namespace := map[bool]string{true: "other", false: "fleet"}[c == "z"]
		cluster := add("Cluster", namespace, c, "")
		i := add("DevCluster", namespace, "infra-"+c, c, cluster)
		namers = append(namers, i, add("DevMachine", namespace, "machine-"+c, c, cluster))
		if namespace == "fleet" {
			infra = append(infra, i, cluster)
		}
	}
	for n := range rapid.IntRange(1, 6).Draw(t, "things") {
		kind := rapid.SampledFrom([]string{"Secret", "Secret", "DevIdentity", "DevMachineTemplate", "DevVPC", "DevGlobalIdentity"}).Draw(t, "kind")
		name, namespace := fmt.Sprintf("thing-%d", n), rapid.SampledFrom([]string{"fleet", "fleet", "fleet", "third"}).Draw(t, "namespace")
		if kind == "DevGlobalIdentity" {
			namespace = ""
		}
		var owners []object.Ref
		if namespace == "fleet" {
			owners = rapid.SliceOfNDistinct(rapid.SampledFrom(infra), 0, 2, rapid.ID[object.Ref]).Draw(t, "owners")
		}
		r := add(kind, namespace, name, rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "label"), owners...)
		things = append(things, r)
		world[len(world)-1].Movable = rapid.IntRange(0, 3).Draw(t, "movable") == 0
		world[len(world)-1].Hierarchy = kind == "DevGlobalIdentity"
		if kind != "Secret" && kind != "DevVPC" {
			namers = append(namers, r)
		}
	}
	for _, by := range namers {
		for i := range rapid.IntRange(0, 3).Draw(t, "names") {
			what := rapid.SampledFrom(things).Draw(t, "what")
			if rapid.IntRange(0, 9).Draw(t, "dangles") == 0 {
				what = object.Ref{Kind: "Secret", Namespace: "fleet", Name: "nobody-has-it"}
			}
			if what == by || by.Namespace == "third" && what.Namespace == "fleet" {
				continue
			}
			form := rapid.SampledFrom(referenceForms(what)).Draw(t, "form")
			inside := ""
			if what.Namespace != by.Namespace && what.Namespace != "" {
				if !strings.Contains(form, "NS") {
					continue
				}
				inside = what.Namespace
			} else if what.Namespace != "" && rapid.Bool().Draw(t, "namespace given") {
				inside = what.Namespace
			}
			text := strings.NewReplacer("NAME", what.Name, "KIND", what.Kind, "GROUP", what.Group, "NS", `"`+inside+`"`).Replace(form)
			contents[by] = append(contents[by], fmt.Sprintf("f%d: {%s}", i, text))
			names = append(names, referencedObject{by, what})
		}
	}
	for i, o := range world {
		world[i].References = referencesOf(t, o.Ref, "{spec: {"+strings.Join(contents[o.Ref], ", ")+"}}")
	}
	return world, names
}

func referenceForms(r object.Ref) []string {
	exact := []string{"anyRef: {apiVersion: GROUP/v1, kind: KIND, name: NAME, namespace: NS}", "whatever: {kind: KIND, name: NAME, namespace: NS}"}
	switch r.Kind {
	case "Secret":
		return []string{
			"identityRef: {name: NAME}", "credentialsRef: {name: NAME, namespace: NS}", "secretRef: NAME", "tokenSecretName: NAME, tokenSecretNamespace: NS",
			"credentialsName: NAME", "some: [{clientSecret: {name: NAME, namespace: NS}}]", "ref: {apiVersion: v1, kind: Secret, name: NAME, namespace: NS}",
			"endpoint: {kind: Secret, name: NAME}", "identityRef: {type: Secret, name: NAME, cloud: x}",
		}
	case "DevVPC":
		return append(exact, "vpcRef: {name: NAME, namespace: NS}", "vpcName: NAME", "vpcs: [{name: NAME}]")
	case "DevMachineTemplate":
		return append(exact, "machineTemplate: {name: NAME, namespace: NS}")
	default:
		return append(exact, "identityRef: {name: NAME, namespace: NS}")
	}
}

// TestWhatIsSharedIsKept checks that after a move of one Cluster, the other Clusters still have all objects that they
// share with it, and the moved one has all that it needs, unless the preflight reports it.
func TestWhatIsSharedIsKept(t *testing.T) {
	outcomes := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		world, names := sharingObjects(t)
		sel := mover.Selection{Namespace: "fleet", Clusters: []string{"a"}}
		if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
			sel = mover.Selection{Namespace: "fleet", All: true}
		}
		m := mover.Select(world, sel)
		copied, leaves, whole := make(map[object.Ref]bool), make(map[object.Ref]bool), make(map[object.Ref]bool)
		for _, o := range m.Objects {
			copied[o.Ref], leaves[o.Ref] = true, o.KeepReason == ""
			whole[o.Ref] = o.KeepReason == "it is cluster-scoped and other Clusters may use it"
		}
		// An object that only such an object references is copied, without its own references to other namespaces.
		for range m.Objects {
			for _, o := range m.Objects {
				for by := range whole {
					whole[o.Ref] = whole[o.Ref] || whole[by] && strings.HasPrefix(o.KeepReason, "it is referenced by "+by.String()+" ")
				}
			}
		}
		said := func(r object.Ref) bool {
			return slices.ContainsFunc(slices.Concat(m.Findings, m.InUseFindings), func(f mover.Finding) bool {
				return f.Severity == mover.Error && strings.Contains(f.Field+f.Message, r.String()) || f.Field == "references" && strings.Contains(f.Message, r.Name)
			}) || slices.ContainsFunc(m.Missing, func(w mover.ObjectReason) bool { return w.Ref == r })
		}
		ofStaying := func(r object.Ref) bool {
			return strings.HasSuffix(r.Name, "-z") || !sel.All && strings.HasSuffix(r.Name, "-b")
		}
		shared := func(r object.Ref) bool { return r.Kind != "DevVPC" && !strings.HasPrefix(r.Name, "infra-") }
		for _, n := range names {
			if !leaves[n.owner] && leaves[n.target] && (shared(n.target) || ofStaying(n.owner)) && !said(n.target) {
				t.Fatalf("%s stays and references %s, which leaves:\n%s", n.owner, n.target, membersText(m))
			}
			if copied[n.owner] && !whole[n.owner] && !copied[n.target] && !said(n.target) {
				t.Fatalf("%s moves and references %s, which does not:\n%s", n.owner, n.target, membersText(m))
			}
			outcomes[fmt.Sprintf("named by what %s: %s, %v", outcomeText(copied[n.owner], leaves[n.owner]), outcomeText(copied[n.target], leaves[n.target]), said(n.target))]++
		}
		for _, o := range world {
			for _, owner := range o.Owners {
				if leaves[o.Ref] && ofStaying(owner.Ref) && shared(o.Ref) {
					t.Fatalf("%s leaves, and its owner %s stays:\n%s", o.Ref, owner.Ref, membersText(m))
				}
			}
		}
	})
	t.Log(outcomes)
}

func outcomeText(copied, leaves bool) string {
	switch {
	case leaves:
		return "moves"
	case copied:
		return "is copied"
	default:
		return "stays"
	}
}
