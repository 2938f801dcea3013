package mover

import (
	"cmp"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// keepShared marks members that something left behind still needs: they are copied and stay at the source. Objects that
// represent the machines of a moving cluster never stay, whatever else owns them, because both sides would reconcile
// them.
func (g *graph) keepShared() {
	for _, n := range g.nodes {
		if n.in && pause.IsRoot(n.o.Ref) && n.o.Ref.Kind == "ClusterClass" {
			n.keep = cmp.Or(n.keep, g.classStays(n))
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			if !n.in || n.keep != "" || n.part && !shareable(n.o.Ref) {
				continue
			}
			if c := g.secretOf(n.o.Ref); c != nil && !g.selected(c) {
				n.keep = c.o.Ref.String() + ", which stays, needs it"
			}
			for _, p := range n.owners {
				switch {
				case !p.in && !shareable(n.o.Ref) && n.o.Ref.Namespace != "":
					continue // both sides would act on it
				case !p.in:
					n.keep = "it is also owned by " + p.o.Ref.String() + ", which stays"
				case p.keep != "":
					n.keep = "its owner " + p.o.Ref.String() + " stays: " + p.keep
				default:
					continue
				}
				break
			}
			for _, q := range n.nameBy {
				if n.keep == "" && shareable(n.o.Ref) && (!q.in || q.keep != "") {
					n.keep = "it is also named by " + q.o.Ref.String() + ", which stays"
				}
			}
			changed = changed || n.keep != ""
		}
	}
}

// shareable reports whether objects of a kind only describe something, so that a copy on both sides does no harm. The kind UserAssignedIdentity of
// Azure Service Operator does not: it represents a resource in Azure.
func shareable(r object.Ref) bool {
	return r.Group == "" || r.Group == object.CoreGroup && r.Kind == "ClusterClass" || strings.HasSuffix(r.Kind, "Template") ||
		strings.HasSuffix(r.Kind, "Identity") && strings.HasSuffix(r.Group, object.CoreGroup)
}
