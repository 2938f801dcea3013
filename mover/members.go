package mover

import (
	"cmp"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

func (g *graph) members(cyclic map[*node]bool) Members {
	var m Members
	var open unresolvedReferences
	for _, n := range g.nodes {
		switch {
		case cyclic[n]:
			g.exclude(n, cycleReason, "remove the owner reference that closes the cycle", &m)
		case n.included:
			member := Member{Observed: n.o, Level: n.level, OwningCluster: n.clusterAbove(0), KeepReason: n.keepReason, ByReference: n.byReference}
			member.MemberOwners, m.DroppedOwners = g.memberOwners(n, m.DroppedOwners)
			m.Objects = append(m.Objects, member)
			g.checkReferences(n, cyclic, &m)
			g.checkMissing(n, &open, &m)
			g.checkPool(n, &m.AddressFindings)
			g.checkInUse(n, &m.InUseFindings)
			if why := g.hostedReason(n); why != "" {
				m.Hosted = append(m.Hosted, ObjectReason{Ref: n.o.Ref, Reason: why})
			}
		case g.isNear(n):
			g.exclude(n, g.exclusionReason(n), g.moveAdvice(n), &m)
		}
		if g.isExcludedSecret(n) {
			m.Findings.AddError(n.o.Ref.String(), "Cluster "+g.secretCluster(n.o.Ref).o.Ref.Name+" needs it, but it would not be moved: "+g.exclusionReason(n),
				"label it "+object.MoveLabel+" to have it copied, and create its owner on the target too; or remove the owner reference")
		}
	}
	open.warn(&m.Findings)
	slices.SortStableFunc(m.Objects, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), object.Compare(a.Ref, b.Ref))
	})
	return m
}

const (
	cycleReason       = "it is in or below a cycle of owner references"
	ownersAloneReason = "its owners are moved without their dependents"
)

// exclude records that an object does not move. It adds an error if the object belongs to a Cluster
// that moves, because the target would lack the object or create it again, and otherwise a warning.
func (g *graph) exclude(n *node, why, remedy string, m *Members) {
	m.Excluded = append(m.Excluded, ObjectReason{Ref: n.o.Ref, Reason: why})
	switch {
	case g.isExcludedSecret(n): // has a separate finding
	case g.inSelectedCluster(n), n.inCluster, g.clusterFilter(n.o.ClusterName) && strings.HasSuffix(n.o.Ref.Group, object.CoreGroup) && n.o.ClusterName != "":
		m.Findings.AddError(n.o.Ref.String(), "it belongs to Cluster "+n.clusterAbove(0)+" but would not be moved: "+why, remedy)
	default:
		m.ExclusionWarnings.AddWarning(n.o.Ref.String(), "it is not moved: "+why, remedy)
	}
}

// memberOwners returns the owner references of n that refer to members. It also returns dropped,
// with each other owner reference of n appended.
func (g *graph) memberOwners(n *node, dropped []ObjectReason) ([]object.Owner, []ObjectReason) {
	var owners []object.Owner
	for _, owner := range n.o.Owners {
		p := g.byUID[owner.UID]
		switch {
		case p == n:
			dropped = append(dropped, ObjectReason{Ref: n.o.Ref, Reason: "it owns itself: the owner reference is not copied"})
		case p == nil:
			dropped = append(dropped, ObjectReason{Ref: n.o.Ref, Reason: "its owner " + owner.Ref.Short() +
				" does not exist or cannot be moved: the owner reference is not copied"})
		case !p.included:
			dropped = append(dropped, ObjectReason{Ref: n.o.Ref, Reason: "its owner " + p.o.Ref.String() +
				" stays at the source: the owner reference is not copied"})
		default:
			// Use the version of the copied owner: the API server may no longer serve the version
			// in the reference.
			owner.Ref, owner.Version, owner.UID = p.o.Ref, p.o.Version, ""
			owners = append(owners, owner)
		}
	}
	return owners, dropped
}

const maxDepth = 16

// clusterAbove returns the name of the Cluster that n is, that its label names, or that is above n
// among its owners, or "". It limits the depth, because owners may form a cycle.
func (n *node) clusterAbove(depth int) string {
	switch {
	case pause.IsCluster(n.o.Ref):
		return n.o.Ref.Name
	case n.o.ClusterName != "":
		return n.o.ClusterName
	case depth == maxDepth:
		return ""
	}
	for _, p := range n.allOwners() {
		if name := p.clusterAbove(depth + 1); name != "" {
			return name
		}
	}
	return ""
}

// isNear reports whether a user may expect the object to move.
func (g *graph) isNear(n *node) bool {
	if n.o.Ref.Namespace != g.sel.Namespace || pause.IsCluster(n.o.Ref) && !g.sel.All {
		return false
	}
	if g.sel.All {
		return n.o.Ref.Group != "" || n.o.ClusterName != ""
	}
	return g.clusterFilter(n.o.ClusterName) || n.o.ClusterName == "" && (n.o.Movable || n.o.Hierarchy)
}

func (g *graph) exclusionReason(n *node) string {
	if n.o.ClusterName == "" && (n.o.Movable || n.o.Hierarchy) {
		return "it is labelled to move, but not with the name of its Cluster"
	}
	if g.isOrphan(n) {
		return "it has the label of Cluster " + n.o.ClusterName + ", which does not exist"
	}
	if !n.hasOwner() {
		return "it has no owner that moves and no label " + object.MoveLabel
	}
	for _, owner := range n.o.Owners {
		if g.byUID[owner.UID] == nil {
			return "its owner " + owner.Ref.Short() + " does not exist or cannot be moved"
		}
	}
	for _, p := range n.owners {
		if !p.included {
			return "its owner " + p.o.Ref.String() + " is not moved"
		}
	}
	return ownersAloneReason
}

func (g *graph) isOrphan(n *node) bool {
	return n.o.ClusterName != "" && n.o.Ref.Group != object.OwnGroup && g.labelledCluster(n) == nil
}

// moveAdvice returns what users can do to make an excluded object move.
func (g *graph) moveAdvice(n *node) string {
	const byName = "label it " + object.ClusterNameLabel + " with the name of the Cluster to move it with; a move of the whole namespace includes it"
	switch {
	case g.isOrphan(n):
		return "delete it, or correct the label"
	case n.o.Movable || n.o.Hierarchy:
		return byName
	case !g.inSelectedCluster(n) || g.exclusionReason(n) == ownersAloneReason:
		return "label it " + object.MoveLabel + " to move it"
	}
	if slices.ContainsFunc(n.owners, func(p *node) bool { return !p.included && !isShareable(n.o.Ref) }) {
		return "move its owners too, or correct its owner references" // its owner would replace it
	}
	return "label it " + object.MoveLabel + " to move it without that owner; if the owner no longer exists, remove the owner reference"
}

// hostedKinds returns the kinds of control planes that always run as workloads of the management cluster: those
// of k0smotron, Kamaji, HyperShift, the hosted and the nested provider, and vcluster.
func hostedKinds() []string {
	return []string{
		"K0smotronControlPlane.controlplane." + object.CoreGroup,
		"KamajiControlPlane.controlplane." + object.CoreGroup,
		"HostedControlPlane.controlplane." + object.CoreGroup,
		"HostedControlPlane.hypershift.openshift.io",
		"NestedControlPlane.controlplane." + object.CoreGroup,
		"VCluster.infrastructure." + object.CoreGroup,
	}
}

// hostedReason returns why a control plane or a machine runs as a workload of the management
// cluster, or "". A control plane of an unknown kind does if it is available and has replicas but
// owns no Machine. A managed control plane of a cloud has no replicas.
func (g *graph) hostedReason(n *node) string {
	if slices.Contains(hostedKinds(), n.o.Ref.GroupKind()) {
		return "it is a hosted control plane"
	}
	if n.o.Local && !slices.ContainsFunc(g.nodes, func(c *node) bool {
		return c.o.Ref.Kind == "KubevirtCluster" && c.o.HasReference(object.InfraClusterField) && c.o.Ref.Namespace == n.o.Ref.Namespace && c.clusterAbove(0) == n.clusterAbove(0)
	}) {
		return "its virtual machine runs in this management cluster, because no " + object.InfraClusterField + " names another cluster"
	}
	if n.o.Replicas == 0 || slices.ContainsFunc(n.dependents, func(child *node) bool { return child.o.Machine != nil }) {
		return ""
	}
	available := slices.ContainsFunc(g.clusters, func(c *node) bool {
		return c.o.Cluster != nil && c.o.Cluster.ControlPlane == n.o.Ref && c.o.Cluster.ControlPlaneInitialized
	})
	if !available || pause.IsCluster(n.o.Ref) {
		return ""
	}
	return "it is an available control plane with replicas but without Machines, so it is a hosted control plane"
}
