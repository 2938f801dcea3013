package mover

import (
	"cmp"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// members returns the result of the computed graph.
func (g *graph) members(cyclic map[*node]bool) Members {
	var m Members
	var open unjudged
	for _, n := range g.nodes {
		switch {
		case cyclic[n]:
			g.leave(n, inCircle, "take off the owner reference that closes the circle", &m)
		case n.in:
			member := Member{Observed: n.o, Level: n.level, ClusterOf: g.clusterOf(n), Keep: n.keep, Named: n.named}
			member.Within, m.Dropped = g.within(n, m.Dropped)
			m.Objects = append(m.Objects, member)
			g.needs(n, cyclic, &m)
			g.missing(n, &open, &m)
			g.pool(n, &m.Addresses)
			g.taken(n, &m.Taken)
			if why := g.hosted(n); why != "" {
				m.Hosted = append(m.Hosted, Wait{Ref: n.o.Ref, Why: why})
			}
		case g.near(n):
			g.leave(n, g.whyLeft(n), g.howToMove(n), &m)
		}
		if g.lostSecret(n) {
			m.Findings.Fail(n.o.Ref.String(), "Cluster "+g.secretOf(n.o.Ref).o.Ref.Name+" needs it, and it would stay: "+g.whyLeft(n),
				"label it "+object.MoveLabel+" to have it copied, and make what owns it on the target too; or remove the owner reference")
		}
	}
	open.warn(&m.Findings)
	slices.SortStableFunc(m.Objects, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), object.Compare(a.Ref, b.Ref))
	})
	return m
}

const (
	inCircle    = "it is in or below a circle of objects that own each other"
	ownersAlone = "its owners move by themselves, not with what they own"
)

// leave records that an object near the selection stays. This is an error if the object belongs to a Cluster that moves, because the target would
// lack it or create it again.
func (g *graph) leave(n *node, why, remedy string, m *Members) {
	m.Left = append(m.Left, Wait{Ref: n.o.Ref, Why: why})
	switch {
	case g.lostSecret(n): // has a separate finding
	case g.belongs(n), n.part, g.chooses(n.o.ClusterName) && strings.HasSuffix(n.o.Ref.Group, object.CoreGroup) && n.o.ClusterName != "":
		m.Findings.Fail(n.o.Ref.String(), "it belongs to Cluster "+g.clusterOf(n)+" and would be left behind: "+why, remedy)
	default:
		m.Stays.Warn(n.o.Ref.String(), "it is not moved: "+why, remedy)
	}
}

// within returns the owner references to members, and adds the other ones to dropped, with the reason.
func (g *graph) within(n *node, dropped []Wait) ([]object.Owner, []Wait) {
	var owners []object.Owner
	for _, owner := range n.o.Owners {
		p := g.byUID[owner.UID]
		switch {
		case p == n:
			dropped = append(dropped, Wait{Ref: n.o.Ref, Why: "it owns itself: the reference does not travel"})
		case p == nil:
			dropped = append(dropped, Wait{Ref: n.o.Ref, Why: "its owner " + owner.Ref.Short() + " is not there or cannot move: the reference does not travel"})
		case !p.in:
			dropped = append(dropped, Wait{Ref: n.o.Ref, Why: "its owner " + p.o.Ref.String() + " stays: the reference does not travel"})
		default:
			// The version is that of the copied owner, because the reference may name a version that is no longer served.
			owner.Ref, owner.Version, owner.UID = p.o.Ref, p.o.Version, ""
			owners = append(owners, owner)
		}
	}
	return owners, dropped
}

func (g *graph) clusterOf(n *node) string {
	if pause.IsCluster(n.o.Ref) {
		return n.o.Ref.Name
	}
	if n.o.ClusterName != "" {
		return n.o.ClusterName
	}
	for _, p := range n.above() {
		if name := g.clusterAbove(p, 0); name != "" {
			return name
		}
	}
	return ""
}

// deepest is the maximum depth of a walk along owners.
const deepest = 16

// clusterAbove returns the Cluster above a node. The depth is limited because owners may form a cycle.
func (g *graph) clusterAbove(n *node, depth int) string {
	switch {
	case pause.IsCluster(n.o.Ref):
		return n.o.Ref.Name
	case n.o.ClusterName != "":
		return n.o.ClusterName
	case depth == deepest:
		return ""
	}
	for _, p := range n.above() {
		if name := g.clusterAbove(p, depth+1); name != "" {
			return name
		}
	}
	return ""
}

// near reports whether a user may expect that an object belongs to the selection.
func (g *graph) near(n *node) bool {
	if n.o.Ref.Namespace != g.sel.Namespace || pause.IsCluster(n.o.Ref) && !g.sel.All {
		return false
	}
	if g.sel.All {
		return n.o.Ref.Group != "" || n.o.ClusterName != ""
	}
	return g.chooses(n.o.ClusterName) || n.o.ClusterName == "" && (n.o.Movable || n.o.Hierarchy)
}

func (g *graph) whyLeft(n *node) string {
	if n.o.ClusterName == "" && (n.o.Movable || n.o.Hierarchy) {
		return "it is labelled to move, and not with the Cluster that it belongs to"
	}
	if g.orphan(n) {
		return "it has the label of Cluster " + n.o.ClusterName + ", which does not exist"
	}
	if !n.owned() {
		return "nothing that moves owns it, and it has no label " + object.MoveLabel
	}
	for _, owner := range n.o.Owners {
		if g.byUID[owner.UID] == nil {
			return "its owner " + owner.Ref.Short() + " is not there or cannot move"
		}
	}
	for _, p := range n.owners {
		if !p.in {
			return "its owner " + p.o.Ref.String() + " does not move"
		}
	}
	return ownersAlone
}

// orphan reports whether the label of an object names a Cluster that does not exist.
func (g *graph) orphan(n *node) bool {
	return n.o.ClusterName != "" && n.o.Ref.Group != object.OwnGroup && g.labelled(n) == nil
}

// howToMove returns what the user must do so that an object moves. whyLeft returns why it does not move.
func (g *graph) howToMove(n *node) string {
	const byName = "label it " + object.ClusterNameLabel + " with the name of a Cluster that it is to move with; a move of the whole namespace takes it along"
	switch {
	case g.orphan(n):
		return "delete it, or correct the label"
	case n.o.Movable || n.o.Hierarchy:
		return byName
	case !g.belongs(n) || g.whyLeft(n) == ownersAlone:
		return "label it " + object.MoveLabel + " if it is to move"
	}
	for _, p := range n.owners {
		switch {
		case p.in, shareable(n.o.Ref):
			continue
		case g.belongs(p):
			return "see to the finding of " + p.o.Ref.String()
		case g.labelled(p) != nil:
			return "take that owner reference off, or move Cluster " + p.o.ClusterName + " too"
		default:
			return "label " + p.o.Ref.String() + " " + object.ClusterNameLabel + "=" + n.o.ClusterName + " so that it moves too, or take that owner reference off"
		}
	}
	return "label it " + object.MoveLabel + " to move it without that owner; if the owner is gone, take the owner reference off"
}

// hostedKinds returns the kinds of control planes that always run as workloads of the management cluster: of k0smotron, Kamaji, HyperShift, the
// hosted control plane provider, the nested provider and vcluster.
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

// hosted returns why a control plane or a machine runs as a workload of the management cluster, or "" if it does not. A control plane of
// another kind counts if it is available and has replicas, but owns no Machine. A managed control plane of a cloud has no replicas.
func (g *graph) hosted(n *node) string {
	if slices.Contains(hostedKinds(), n.o.Ref.GroupKind()) {
		return "it is a hosted control plane"
	}
	if n.o.Local && !slices.ContainsFunc(g.nodes, func(c *node) bool {
		return c.o.Ref.Kind == "KubevirtCluster" && c.o.Names(object.InfraClusterField) && c.o.Ref.Namespace == n.o.Ref.Namespace && g.clusterOf(c) == g.clusterOf(n)
	}) {
		return "its virtual machine is in this management cluster, because no " + object.InfraClusterField + " names another one"
	}
	if n.o.Replicas == 0 || slices.ContainsFunc(n.down, func(child *node) bool { return child.o.Machine != nil }) {
		return ""
	}
	available := slices.ContainsFunc(g.clusters, func(c *node) bool {
		return c.o.Cluster != nil && c.o.Cluster.ControlPlane == n.o.Ref && c.o.Cluster.ControlPlaneInitialized
	})
	if !available || pause.IsCluster(n.o.Ref) {
		return ""
	}
	return "it is an available control plane with replicas and owns no Machine, so it is a hosted one"
}
