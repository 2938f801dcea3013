package mover

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/view"
)

type reference struct {
	field  string
	target *node
}

func (g *graph) resolve() {
	for _, n := range g.nodes {
		for _, r := range n.o.References {
			p := g.find(n, r)
			if p == nil {
				n.unresolved = append(n.unresolved, r)
				continue
			}
			n.addReference(r, p)
			// An identity may belong to another provider, and a field without a kind may mean a
			// Secret or a ConfigMap, so both kinds count.
			for _, kind := range []string{"Secret", "ConfigMap"} {
				s := g.byRef[object.Ref{Kind: kind, Namespace: r.Ref.Namespace, Name: r.Ref.Name}]
				if s != nil && s != p && r.Ref.Kind == "" && (r.IsCredential() || p.o.Ref.Group == "") {
					n.addReference(r, s)
				}
			}
		}
	}
}

func (n *node) addReference(r object.Reference, p *node) {
	if p != n && !pause.IsCluster(p.o.Ref) {
		n.references = append(n.references, reference{r.Field, p})
		p.referencedBy = append(p.referencedBy, n)
	}
}

// find returns the object that a reference of n refers to, or nil. A reference to a cluster-scoped
// object may contain the namespace of n.
func (g *graph) find(n *node, r object.Reference) (best *node) {
	if p := g.byRef[r.Ref]; p != nil {
		return p
	}
	fits, score := g.byName[types.NamespacedName{Namespace: r.Ref.Namespace, Name: r.Ref.Name}], 0
	if r.Ref.Namespace != "" {
		fits = slices.Concat(fits, g.byName[types.NamespacedName{Name: r.Ref.Name}])
	}
	for _, p := range fits {
		fit := r.MatchScore(p.o.Ref.Group, p.o.Ref.Kind)
		if r.Uncertain && p.o.Ref.GroupKind() == n.o.Ref.GroupKind() {
			continue
		}
		if fit > score || fit == score && fit > 0 && best.o.Ref.Group != n.o.Ref.Group && p.o.Ref.Group == n.o.Ref.Group {
			best, score = p, fit
		}
	}
	if best == nil && r.Ref.Namespace == "" {
		if found := g.unqualifiedCandidates(r); len(found) == 1 {
			return found[0]
		}
	}
	return best
}

// unqualifiedCandidates returns the Secrets and ConfigMaps that a reference of a cluster-scoped
// object may mean if it names no namespace. Providers search their own namespace, so it returns
// objects in the selected namespace only if there are none outside of it.
func (g *graph) unqualifiedCandidates(r object.Reference) []*node {
	var found, own []*node
	for _, p := range g.nodes {
		switch {
		case p.o.Ref.Name != r.Ref.Name || p.o.Ref.Group != "" || r.MatchScore("", p.o.Ref.Kind) == 0:
		case p.o.Ref.Namespace == g.sel.Namespace:
			own = append(own, p)
		default:
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return own
	}
	return found
}

// includeReferenced includes the objects that members refer to, if they may exist in both clusters.
// For a cluster-scoped member that no other member refers to, it includes only objects in the
// selected namespace.
func (g *graph) includeReferenced() {
	var needed, others []*node
	for _, n := range g.nodes {
		switch n.referenced = n.included && n.keepReason != clusterScopedReason; {
		case n.referenced:
			needed = append(needed, n)
		case n.included:
			others = append(others, n)
		}
	}
	g.follow(needed)
	g.follow(others)
}

func (g *graph) follow(queue []*node) {
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		for _, name := range n.references {
			p := name.target
			switch {
			case g.isClassTemplateReference(n, p.o.Ref), !n.referenced && p.o.Ref.Namespace != g.sel.Namespace:
			case p.included && (p.referenced || !n.referenced):
			case p.included:
				p.referenced = true
				queue = append(queue, p)
			case isShareable(p.o.Ref) || p.o.Ref.Namespace == "" && !isPool(p.o.Ref):
				p.included, p.referenced, p.byReference = true, n.referenced, n.o.Ref.Namespace != ""
				p.keepReason = "it is referenced by " + n.o.Ref.String() + " (" + name.field + ")"
				queue = append(queue, p)
			}
		}
	}
}

// isClassTemplateReference reports whether n is a template of a ClusterClass in another namespace
// that refers to an object there. Such a reference is ignored: Cluster API copies the template to
// the Cluster's namespace, where the name means another object.
func (g *graph) isClassTemplateReference(n *node, named object.Ref) bool {
	r := n.o.Ref
	return !n.byReference && r.Namespace != "" && r.Namespace != g.sel.Namespace && named.Namespace == r.Namespace && strings.HasSuffix(r.Kind, "Template")
}

// remainingUser returns an object of a Cluster that stays and that refers to n, or else one that
// owns n, or nil.
func (g *graph) remainingUser(n *node) *node {
	for _, q := range slices.Concat(n.referencedBy, n.owners) {
		c := g.cluster(q.o.Ref.Namespace, q.clusterAbove(0))
		if c != nil && !g.isSelected(c) {
			return q
		}
	}
	return nil
}

// checkInUse adds a finding if n moves but a Cluster that stays uses it. If n has the label of a
// moving Cluster, an owner that stays does not count as a user, only an object that refers to n.
func (g *graph) checkInUse(n *node, found *Findings) {
	if n.keepReason != "" || isShareable(n.o.Ref) || pause.IsCluster(n.o.Ref) {
		return
	}
	if q := g.remainingUser(n); q != nil && (slices.Contains(n.referencedBy, q) || !g.clusterFilter(n.o.ClusterName)) {
		found.AddError(n.o.Ref.String(), "it moves, but "+q.o.Ref.String()+", which stays, uses it too: it cannot be in both clusters",
			"move all Clusters that use it together, or give each its own")
	}
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// unresolvedReferences collects the references to objects that were not found, which are reported
// in one warning.
type unresolvedReferences struct {
	fields []string
	names  map[string][]string // by field
}

func (u *unresolvedReferences) add(n *node, r object.Reference) {
	if u.names == nil {
		u.names = make(map[string][]string)
	}
	field := n.o.Ref.GroupKind() + " " + listIndex.ReplaceAllString(r.Field, "[]")
	if u.names[field] == nil {
		u.fields = append(u.fields, field)
	}
	u.names[field] = append(u.names[field], r.Ref.Name)
}

func (u *unresolvedReferences) warn(found *Findings) {
	if len(u.fields) == 0 {
		return
	}
	const most = 30
	var list []string
	for _, field := range u.fields[:min(most, len(u.fields))] {
		text := field + ": " + u.names[field][0]
		if more := len(u.names[field]) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, text)
	}
	found.AddWarning("references",
		"these fields refer to objects that were not found among the kinds that move; the target was not checked for them: "+strings.Join(view.More(list, len(u.fields)), "; "),
		"make sure that the target has them; to have scute read a kind, label its CustomResourceDefinition clusterctl.cluster.x-k8s.io")
}
