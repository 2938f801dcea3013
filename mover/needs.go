package mover

import (
	"cmp"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/view"
)

// checkReferences adds findings about the objects that n refers to and that would not move.
func (g *graph) checkReferences(n *node, cyclic map[*node]bool, m *Members) {
	for _, name := range n.references {
		p := name.target
		switch {
		case p.o.Reserved && !p.included:
			if field := p.o.Ref.String(); !slices.ContainsFunc(m.Findings, func(f Finding) bool { return f.Field == field && f.Severity == Warning }) {
				m.Findings.AddWarning(field, "it stays because of annotation "+object.AddressesReservedAnnotation+
					": new machines on the target get no address until the target has a pool with this name",
					"create the pool on the target, with addresses that the source does not assign")
			}
		case p.included && !cyclic[p], p.o.Reserved, g.isClassTemplateReference(n, p.o.Ref), n.o.Ref.Kind == "IPAddress" && !cyclic[p]: // see checkPool
		case !n.referenced:
		case p.o.Ref.Namespace == "" && isPool(p.o.Ref):
			m.addMissing(p.o.Ref, n.o.Ref.String()+" refers to it ("+name.field+"), but two copies of a pool would assign the same addresses")
		case p.o.Ref.Namespace != g.sel.Namespace:
			m.addMissing(p.o.Ref, n.o.Ref.String()+" refers to it ("+name.field+"), but it is in another namespace and is not moved")
		default:
			remedy := "correct the owner references of " + p.o.Ref.Short() + ", or label it " + object.MoveLabel + " and with the name of the Cluster"
			if g.remainingUser(p) != nil || g.isForeign(p) {
				remedy = "move all Clusters that use " + p.o.Ref.Short() + " together, or give each its own"
			}
			m.Findings.AddError(n.o.Ref.String()+": "+name.field, "it refers to "+p.o.Ref.String()+", which would not be moved: "+g.exclusionReason(p), remedy)
		}
	}
}

// checkMissing adds findings about the objects that n refers to and that were not found at the
// source.
func (g *graph) checkMissing(n *node, open *unresolvedReferences, m *Members) {
	add := m.Findings.AddError
	if n.o.Ref.Kind == "MachineSet" {
		add = m.Findings.AddWarning // a MachineSet kept for its revision history may outlive its templates
	}
	for _, r := range n.unresolved {
		field := n.o.Ref.String() + ": " + r.Field
		if n.o.Ref.Namespace == "" && r.Ref.Namespace == "" {
			if found := g.unqualifiedCandidates(r); len(found) > 1 {
				m.Findings.AddWarning(field, ambiguousMessage(found), "make sure that the target has it in the namespace of that provider")
				continue
			}
		}
		switch {
		case r.Uncertain, g.isClassTemplateReference(n, r.Ref) && r.Ref.Group == "":
		case r.Ref.Group == object.OwnGroup:
			m.Findings.AddWarning(field, "it refers to "+r.Ref.String()+", which is not moved because a RepairPolicy creates it",
				"create the same RepairPolicy on the target: it creates the template there and adopts the health check")
		case requiresReferences(n.o.Ref) && (strings.HasSuffix(r.Ref.Group, object.CoreGroup) || strings.HasSuffix(r.Field, ".dataSecretName")):
			add(field, "it refers to "+r.Ref.String()+", which does not exist or has a kind that is not moved",
				"correct the reference, or label the kind's CustomResourceDefinition clusterctl.cluster.x-k8s.io")
		case r.IsCredential() && r.Ref.Namespace != "" && n.referenced:
			ref := r.Ref
			ref.Kind = "Secret"
			m.addMissing(ref, n.o.Ref.String()+" refers to it ("+r.Field+"), but it was not found at the source")
		default:
			open.add(n, r)
		}
	}
}

// ambiguousMessage returns a message about a reference that several objects match. None of these
// objects is copied, because they may belong to other users.
func ambiguousMessage(found []*node) string {
	const most = 10
	var names []string
	for _, p := range found[:min(most, len(found))] {
		names = append(names, p.o.Ref.String())
	}
	return "it refers to an object in the namespace of its provider; several objects have that name, and none of them is copied: " +
		strings.Join(view.More(names, len(found)), ", ")
}

// requiresReferences reports whether Cluster API's contract demands that the references of an
// object resolve.
func requiresReferences(r object.Ref) bool {
	return r.Group == object.CoreGroup || strings.HasSuffix(r.Kind, "ControlPlane")
}

func (m *Members) addMissing(ref object.Ref, why string) {
	if !slices.ContainsFunc(m.Missing, func(w ObjectReason) bool { return w.Ref == ref }) {
		m.Missing = append(m.Missing, ObjectReason{Ref: ref, Reason: why})
	}
}

// checkPool adds a finding if n is an address that moves without its pool, because the pool could
// assign the address again.
func (g *graph) checkPool(n *node, found *Findings) {
	if n.o.Ref.Kind != "IPAddress" || n.keepReason != "" || n.o.Reserved {
		return
	}
	const together = "move all Clusters that use the pool together; or exclude the addresses from the pool at the source, and annotate the pool " +
		object.AddressesReservedAnnotation
	for _, of := range poolsOf(n.o) {
		p := g.poolAt(of)
		switch {
		case p == nil:
			found.AddError(n.o.Ref.String(), "it moves, but its pool "+of.String()+
				" does not exist or has a kind that is not moved, and may assign the address again",
				"annotate the address "+object.AddressesReservedAnnotation+" once nothing can assign it again; or label the CustomResourceDefinition of the "+
					"pool clusterctl.cluster.x-k8s.io, so that scute reads the pool")
			return
		case !p.o.Reserved && (!p.included || p.keepReason != ""):
			found.AddError(n.o.Ref.String(), "it moves, but "+p.o.Ref.String()+" stays at the source too and may assign the address again", together)
			return
		}
	}
}

// poolsOf returns the pool in an address's spec, or else its owners that are pools, as with Metal3.
func poolsOf(address object.Observed) (pools []object.Ref) {
	if address.Pool != nil {
		return []object.Ref{*address.Pool}
	}
	for _, owner := range address.Owners {
		if isPool(owner.Ref) {
			pools = append(pools, owner.Ref)
		}
	}
	return pools
}

// isPool reports whether an object may be an address pool. Two copies of a pool would assign the
// same addresses.
func isPool(r object.Ref) bool { return strings.HasSuffix(r.Kind, "Pool") }

// poolAt returns the pool that an address refers to, or nil. A reference to a cluster-scoped pool
// may contain the address's namespace.
func (g *graph) poolAt(ref object.Ref) *node {
	if p := g.byRef[ref]; p != nil || ref.Namespace == "" {
		return p
	}
	ref.Namespace = ""
	return g.byRef[ref]
}

// isExcludedSecret reports whether n is a Secret of a selected Cluster that does not move because
// of its owner.
func (g *graph) isExcludedSecret(n *node) bool { return !n.included && g.isClusterSecret(n) }

// keepShared sets the keepReason of members that an object that stays at the source needs. Such
// members are copied but not deleted. Objects that represent machines of a moving Cluster are
// always deleted, whatever owns them, because otherwise both clusters would reconcile them.
func (g *graph) keepShared() {
	for _, n := range g.nodes {
		if n.included && pause.IsRoot(n.o.Ref) && n.o.Ref.Kind == "ClusterClass" {
			n.keepReason = cmp.Or(n.keepReason, g.classKeepReason(n))
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			if !n.included || n.keepReason != "" || n.inCluster && !isShareable(n.o.Ref) {
				continue
			}
			if c := g.secretCluster(n.o.Ref); c != nil && !g.isSelected(c) {
				n.keepReason = c.o.Ref.String() + ", which stays, needs it"
			}
			for _, p := range n.owners {
				switch {
				case !p.included && !isShareable(n.o.Ref) && n.o.Ref.Namespace != "":
					continue // both clusters would reconcile it
				case !p.included:
					n.keepReason = "it is also owned by " + p.o.Ref.String() + ", which stays"
				case p.keepReason != "":
					n.keepReason = "its owner " + p.o.Ref.String() + " stays: " + p.keepReason
				default:
					continue
				}
				break
			}
			for _, q := range n.referencedBy {
				if n.keepReason == "" && isShareable(n.o.Ref) && (!q.included || q.keepReason != "") {
					n.keepReason = "it is also referenced by " + q.o.Ref.String() + ", which stays"
				}
			}
			changed = changed || n.keepReason != ""
		}
	}
}

// isShareable reports whether objects of a kind only describe something, so that a copy in both
// clusters does no harm. UserAssignedIdentity of Azure Service Operator is not shareable: it
// represents a resource in Azure.
func isShareable(r object.Ref) bool {
	return r.Group == "" || r.Group == object.CoreGroup && r.Kind == "ClusterClass" || strings.HasSuffix(r.Kind, "Template") ||
		strings.HasSuffix(r.Kind, "Identity") && strings.HasSuffix(r.Group, object.CoreGroup)
}
