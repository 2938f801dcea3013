package mover

import (
	"strings"

	"scute.dev/kube/object"
)

// needs are findings about what a member refers to, or takes from, and what would not come with it.
func (g *graph) needs(n *node, cyclic map[*node]bool) []Finding {
	var found []Finding
	severity := Error
	if n.o.Ref.Kind == "MachineSet" {
		severity = Warning // one that is retained for its revision may outlive its templates
	}
	for _, r := range n.o.References {
		p := g.byRef[r.Ref]
		if p == nil && r.Ref.Namespace != "" {
			global := r.Ref
			global.Namespace = ""
			p = g.byRef[global]
		}
		switch {
		case p == nil && r.Ref.Group == object.OwnGroup:
			found = append(found, Finding{
				Severity: Warning, Field: n.o.Ref.String() + ": " + r.Field,
				Message: "it refers to " + r.Ref.String() + ", which stays: a RepairPolicy makes it",
				Remedy:  "make the same RepairPolicy on the target: it makes the template there, and takes the health check over",
			})
		case p == nil:
			found = append(found, Finding{
				Severity: severity, Field: n.o.Ref.String() + ": " + r.Field,
				Message: "it refers to " + r.Ref.String() + ", which does not exist or is of a kind that does not move",
				Remedy:  "correct the reference, or label the kind's CustomResourceDefinition clusterctl.cluster.x-k8s.io",
			})
		case !p.in || cyclic[p]:
			found = append(found, Finding{
				Severity: Error, Field: n.o.Ref.String() + ": " + r.Field,
				Message: "it refers to " + r.Ref.String() + ", which would stay: " + g.whyLeft(p),
				Remedy:  "correct the owner references of " + r.Ref.Short() + ", or label it " + object.MoveLabel + " and with the name of the Cluster",
			})
		}
	}
	return append(found, g.pool(n)...)
}

// pool: an address that moves away from its pool is free there, and the pool may hand it out again.
func (g *graph) pool(n *node) []Finding {
	if n.o.Ref.Kind != "IPAddress" || n.keep != "" {
		return nil
	}
	for _, p := range n.owners {
		if !strings.HasSuffix(p.o.Ref.Kind, "Pool") || p.o.Reserved || p.in && p.keep == "" {
			continue
		}
		return []Finding{{
			Severity: Error, Field: n.o.Ref.String(), Message: "it moves, but " + p.o.Ref.String() + " stays at the source too and may hand the address out again",
			Remedy: "move all Clusters that use the pool together; or exclude the addresses from the pool at the source, and annotate it " + object.ReservedAnnotation,
		}}
	}
	return nil
}

// lostSecret: a Secret that Cluster API keeps for a selected Cluster, and that somebody else owns, would neither move
// nor be missed before the Cluster needs it.
func (g *graph) lostSecret(n *node) (Finding, bool) {
	if n.in || !g.needed(n) {
		return Finding{}, false
	}
	c := g.secretOf(n.o.Ref)
	return Finding{
		Severity: Error, Field: n.o.Ref.String(), Message: "Cluster " + c.o.Ref.Name + " needs it, and it would stay: " + g.whyLeft(n),
		Remedy: "label it " + object.MoveLabel + " to have it copied, and make what owns it on the target too; or remove the owner reference",
	}, true
}
