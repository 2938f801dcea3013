package mover

import (
	"cmp"
	"slices"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// members turns the worked-out graph into its answer.
func (g *graph) members(cyclic map[*node]bool) Members {
	var m Members
	var open unjudged
	for _, n := range g.nodes {
		switch {
		case cyclic[n]:
			m.Left = append(m.Left, Wait{Ref: n.o.Ref, Why: "it is in or below a circle of objects that own each other"})
		case n.in:
			member := Member{Observed: n.o, Level: n.level, ClusterOf: g.clusterOf(n), Keep: n.keep, Named: n.named}
			member.Within, m.Dropped = g.within(n, m.Dropped)
			m.Objects = append(m.Objects, member)
			g.needs(n, cyclic, &m)
			g.missing(n, &open, &m)
			m.Addresses = append(m.Addresses, g.pool(n)...)
			m.Taken = append(m.Taken, g.taken(n)...)
			if why := g.hosted(n); why != "" {
				m.Hosted = append(m.Hosted, Wait{Ref: n.o.Ref, Why: why})
			}
		case g.near(n):
			m.Left = append(m.Left, Wait{Ref: n.o.Ref, Why: g.whyLeft(n)})
		}
		if f, lost := g.lostSecret(n); lost {
			m.Findings = append(m.Findings, f)
		}
	}
	m.Findings = append(m.Findings, open.findings()...)
	slices.SortStableFunc(m.Objects, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), object.Compare(a.Ref, b.Ref))
	})
	return m
}

// within keeps the owner references that lead to members, and says of the others why they are dropped.
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
			// In the version that the owner itself travels in: the reference may name one that is no longer served.
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

// clusterAbove looks upwards for the Cluster; the depth is bounded so that a circle of owners ends.
func (g *graph) clusterAbove(n *node, depth int) string {
	const deepest = 16
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

// near: an object that a user might think belongs to the selection.
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
	if len(n.o.Owners) == 0 {
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
	return "its owners move by themselves, not with what they own"
}
