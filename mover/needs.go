package mover

import (
	"slices"
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
		p := g.find(r.Ref)
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
	return found
}

// pool: an address that moves away from its pool is free there, and the pool may hand it out again.
func (g *graph) pool(n *node) []Finding {
	if n.o.Ref.Kind != "IPAddress" || n.keep != "" || n.o.Reserved {
		return nil
	}
	const together = "move all Clusters that use the pool together; or exclude the addresses from the pool at the source, and annotate it " + object.ReservedAnnotation
	for _, of := range poolsOf(n.o) {
		p := g.find(of)
		switch {
		case p == nil:
			return []Finding{{
				Severity: Error, Field: n.o.Ref.String(), Message: "it moves, but its pool " + of.String() + " does not exist or is of a kind that does not move, and may hand the address out again",
				Remedy: "annotate the address " + object.ReservedAnnotation + " once nothing can hand it out again; or label the CustomResourceDefinition of the pool clusterctl.cluster.x-k8s.io, so that the pool is looked at",
			}}
		case !p.o.Reserved && (!p.in || p.keep != ""):
			return []Finding{{
				Severity: Error, Field: n.o.Ref.String(), Message: "it moves, but " + p.o.Ref.String() + " stays at the source too and may hand the address out again",
				Remedy: together,
			}}
		}
	}
	return nil
}

// poolsOf is the pool that the spec of an address names. Metal3, which has a separate kind of addresses, names it otherwise, and as an owner.
func poolsOf(address object.Observed) (pools []object.Ref) {
	if address.Pool != nil {
		return []object.Ref{*address.Pool}
	}
	for _, owner := range address.Owners {
		if strings.HasSuffix(owner.Ref.Kind, "Pool") {
			pools = append(pools, owner.Ref)
		}
	}
	return pools
}

// find is what a reference leads to: one to an object of the whole cluster may have the namespace of who refers to it.
func (g *graph) find(ref object.Ref) *node {
	if p := g.byRef[ref]; p != nil || ref.Namespace == "" {
		return p
	}
	ref.Namespace = ""
	return g.byRef[ref]
}

// files finds the Secrets that do not move and that a member takes content of files from. One that stays may be on the target already, or
// be made there, so it is no finding yet. A configuration of another namespace than the Clusters' is part of a ClusterClass: Cluster API
// copies it to that of the Cluster, where it counts.
func (g *graph) files(n *node, cyclic map[*node]bool, used, seen map[object.Ref]bool, m *Members) {
	if n.o.Ref.Kind != "KubeadmControlPlane" && !used[n.o.Ref] {
		return
	}
	for _, r := range n.o.Files {
		p := g.byRef[r.Ref]
		if seen[r.Ref] || r.Ref.Namespace != g.sel.Namespace || p != nil && p.in && !cyclic[p] {
			continue
		}
		seen[r.Ref] = true
		if p == nil {
			m.Findings = append(m.Findings, Finding{
				Severity: Warning, Field: n.o.Ref.String() + ": " + r.Field,
				Message: "it takes content from " + r.Ref.String() + ", which does not exist: no new machine can be made, here or on the target",
				Remedy:  "make the Secret, or correct the field",
			})
			continue
		}
		m.Files = append(m.Files, Wait{Ref: r.Ref, Why: n.o.Ref.String() + " makes machines with content of it (" + r.Field + "), and it would stay: " + g.whyLeft(p)})
	}
}

// used are what something refers to. A MachineSet of a MachineDeployment does not count: that of an earlier rollout makes no machines, and what the
// current one refers to its MachineDeployment does, too.
func (g *graph) used() map[object.Ref]bool {
	used := make(map[object.Ref]bool)
	for _, n := range g.nodes {
		if n.o.Ref.Kind == "MachineSet" && slices.ContainsFunc(n.owners, func(p *node) bool { return p.o.Ref.Kind == "MachineDeployment" }) {
			continue
		}
		for _, r := range n.o.References {
			used[r.Ref] = true
		}
	}
	return used
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
