package mover

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Selection is the part of a Spec that selects objects.
type Selection struct {
	Namespace string
	Clusters  []string
	All       bool
}

// ClusterFilter returns a function that reports whether the selection contains a Cluster.
func (s Selection) ClusterFilter() func(cluster string) bool {
	if s.All {
		return func(string) bool { return true }
	}
	return sets.New(s.Clusters...).Has
}

// Member is an object that moves.
type Member struct {
	object.Observed
	// Level is 0 if there are no MemberOwners, and otherwise one more than the highest level of the
	// MemberOwners.
	Level int
	// MemberOwners contains the owners of the object that are members too.
	MemberOwners  []object.Owner
	OwningCluster string
	// KeepReason is why the object is copied but not deleted at the source; empty if it is deleted
	// there.
	KeepReason string
	// ByReference means that the object moves only because a namespaced object refers to it.
	// Anybody who may write the namespaced object could have chosen this one.
	ByReference bool
}

// Members is the result of applying a selection to the observed objects.
type Members struct {
	Objects []Member // by level, then by reference
	// Excluded contains objects that are related to the selection but do not move.
	Excluded []ObjectReason
	// DroppedOwners contains the objects with an owner reference that cannot be copied.
	DroppedOwners []ObjectReason
	// Missing contains objects that the target must already have. They are not copied, because they
	// do not exist at the source, or exist only in another namespace, where a copy would be active.
	Missing []ObjectReason
	// Hosted contains control planes and machines that run as workloads of the management cluster,
	// with the evidence. A copy of such an object does not have its data.
	Hosted []ObjectReason
	// Findings prevent a move: a member would lose an object that it needs, or an object of a
	// moving Cluster would stay.
	Findings Findings
	// ExclusionWarnings contains a warning about each object in Excluded that Findings does not
	// contain.
	ExclusionWarnings Findings
	// AddressFindings prevent a move, because an address would leave its pool. They do not prevent
	// a backup, which deletes nothing.
	AddressFindings Findings
	// InUseFindings prevent a move, because a Cluster that stays would lose an object. They do not
	// prevent a backup.
	InUseFindings Findings
}

type graph struct {
	sel           Selection
	clusterFilter func(cluster string) bool
	byUID         map[types.UID]*node
	byRef         map[object.Ref]*node
	byName        map[types.NamespacedName][]*node
	nodes         []*node
	clusters      []*node
	// shared maps a ClusterClass to a Cluster that uses the class and is not selected.
	shared map[*node]*node
}

type node struct {
	o            object.Observed
	owners       []*node // by ownerReference, if observed
	softOwners   []*node // owners by convention, for order and membership
	dependents   []*node // inverse of owners and softOwners
	references   []reference
	referencedBy []*node            // inverse of references
	unresolved   []object.Reference // references to objects that were not observed
	included     bool
	referenced   bool // by an object that moves
	byReference  bool // moves only because a field of a namespaced object names it
	inCluster    bool // below a selected Cluster
	keepReason   string
	level        int
}

// Select returns the objects that a selection contains. world must have every object of the movable
// kinds in the selection's namespace and in the namespaces of its ClusterClasses, all Clusters, all
// cluster-scoped objects that are labelled to move, and all objects of other namespaces that refer
// to these objects or that they refer to. Select follows the rules of clusterctl's object graph,
// and reports objects that clusterctl omits silently.
func Select(world []object.Observed, sel Selection) Members {
	g := newGraph(world, sel)
	g.connect()
	g.resolve()
	g.include()
	g.includeReferenced()
	g.keepShared()
	cyclic := g.assignLevels()
	return g.members(cyclic)
}

func newGraph(world []object.Observed, sel Selection) *graph {
	g := &graph{
		sel: sel, clusterFilter: sel.ClusterFilter(), shared: make(map[*node]*node),
		byUID: make(map[types.UID]*node, len(world)), byRef: make(map[object.Ref]*node, len(world)),
		byName: make(map[types.NamespacedName][]*node, len(world)),
	}
	for _, o := range world {
		n := &node{o: o}
		g.nodes = append(g.nodes, n)
		g.byUID[o.UID] = n
		g.byRef[o.Ref] = n
	}
	slices.SortFunc(g.nodes, func(a, b *node) int { return object.Compare(a.o.Ref, b.o.Ref) })
	for _, n := range g.nodes {
		name := types.NamespacedName{Namespace: n.o.Ref.Namespace, Name: n.o.Ref.Name}
		g.byName[name] = append(g.byName[name], n)
		if pause.IsCluster(n.o.Ref) {
			g.clusters = append(g.clusters, n)
		}
	}
	for _, c := range g.clusters {
		if class := g.class(c); class != nil && g.shared[class] == nil && !g.isSelected(c) {
			g.shared[class] = c
		}
	}
	return g
}

func (g *graph) connect() {
	for _, n := range g.nodes {
		for _, owner := range n.o.Owners {
			if p := g.byUID[owner.UID]; p != nil && p != n {
				n.owners = append(n.owners, p)
				p.dependents = append(p.dependents, n)
			}
		}
	}
	for _, n := range g.nodes {
		if p := g.softOwner(n); p != nil && !slices.Contains(n.owners, p) {
			n.softOwners = append(n.softOwners, p)
			p.dependents = append(p.dependents, n)
		}
		if n.o.Ref.Group == object.AddonsGroup && n.o.Ref.Kind == "HelmReleaseProxy" {
			// Order only: the add-on provider for Helm deletes a HelmReleaseProxy without its
			// Cluster, even a paused one, and uninstalls the chart.
			if c := g.cluster(n.o.Ref.Namespace, n.o.BoundCluster); c != nil && !slices.Contains(n.owners, c) {
				n.softOwners = append(n.softOwners, c)
			}
		}
	}
}

// softOwner returns the owner by convention: the Cluster of a ClusterResourceSetBinding, the
// machine that uses a host, or the Cluster that a Secret's name or a label refers to. Except for
// the first two, n must have no owner references or a move label. include attaches a Cluster to its
// ClusterClass, because the class must not include other Clusters.
func (g *graph) softOwner(n *node) *node {
	r := n.o.Ref
	if r.Group == object.AddonsGroup && r.Kind == "ClusterResourceSetBinding" {
		return g.cluster(r.Namespace, n.o.BoundCluster)
	}
	if n.o.Consumer != nil && g.byRef[*n.o.Consumer] != nil && !n.isAncestorOf(g.byRef[*n.o.Consumer], 0) {
		return g.byRef[*n.o.Consumer]
	}
	if n.hasOwner() && !n.o.Movable && !n.o.Hierarchy {
		return nil
	}
	if c := g.secretCluster(r); c != nil {
		return c
	}
	if c := g.labelledCluster(n); c != nil && r.Namespace != "" && !pause.IsRoot(r) && !n.isAncestorOf(c, 0) {
		return c
	}
	return nil
}

// labelledCluster returns the Cluster that the label of an object names, or nil. For a
// cluster-scoped object, it is the Cluster in the selection's namespace.
func (g *graph) labelledCluster(n *node) *node {
	if n.o.ClusterName == "" || pause.IsCluster(n.o.Ref) || n.o.Ref.Group == object.OwnGroup {
		return nil
	}
	return g.cluster(cmp.Or(n.o.Ref.Namespace, g.sel.Namespace), n.o.ClusterName)
}

func (g *graph) inSelectedCluster(n *node) bool {
	c := g.labelledCluster(n)
	return c != nil && g.isSelected(c)
}

func (n *node) hasOwner() bool {
	return slices.ContainsFunc(n.o.Owners, func(o object.Owner) bool { return o.UID != n.o.UID })
}

// isAncestorOf reports whether n is a direct or indirect owner of p. It limits the depth, because
// owners may form a cycle.
func (n *node) isAncestorOf(p *node, depth int) bool {
	return depth < maxDepth && slices.ContainsFunc(p.owners, func(q *node) bool { return q == n || n.isAncestorOf(q, depth+1) })
}

// secretCluster returns the Cluster for which Cluster API stores a Secret named CLUSTER-SUFFIX,
// whether or not the Secret has an owner, or nil.
func (g *graph) secretCluster(r object.Ref) *node {
	if r.Group != "" || r.Kind != "Secret" {
		return nil
	}
	for _, suffix := range []string{"-apiserver-etcd-client", "-kubeconfig", "-ca", "-etcd", "-sa", "-proxy"} {
		if name, ok := strings.CutSuffix(r.Name, suffix); ok {
			if c := g.cluster(r.Namespace, name); c != nil {
				return c
			}
		}
	}
	return nil
}

func (g *graph) isClusterSecret(n *node) bool {
	c := g.secretCluster(n.o.Ref)
	return c != nil && g.isSelected(c)
}

func (g *graph) cluster(namespace, name string) *node {
	return g.byRef[object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: namespace, Name: name}]
}

func (g *graph) class(c *node) *node {
	f := c.o.Cluster
	if f == nil || f.ClassName == "" {
		return nil
	}
	return g.byRef[object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: f.ClassNamespace, Name: f.ClassName}]
}

const clusterScopedReason = "it is cluster-scoped and other Clusters may use it"

func (g *graph) include() {
	for _, c := range g.clusters {
		if !g.isSelected(c) {
			continue
		}
		if class := g.class(c); class != nil {
			c.softOwners = append(c.softOwners, class) // order only: descending from the class must not reach other Clusters
			g.includeBelow(class, false)
		}
		g.includeBelow(c, true)
	}
	for _, n := range g.nodes {
		r := n.o.Ref
		switch {
		case r.Namespace == "" && n.o.Hierarchy:
			n.keepReason = clusterScopedReason
			g.includeBelow(n, false)
		case r.Namespace == "" && (n.o.Movable || g.inSelectedCluster(n)):
			n.included, n.keepReason = true, clusterScopedReason
		case r.Namespace != g.sel.Namespace || pause.IsCluster(r):
		case g.inSelectedCluster(n) && (n.o.Movable || n.o.Hierarchy || !n.hasOwner()), g.sel.All && (pause.IsRoot(r) || n.o.Hierarchy):
			g.includeBelow(n, false)
		case n.o.Movable && (g.sel.All || g.isClusterSecret(n)):
			n.included = true
		}
	}
}

func (g *graph) isSelected(c *node) bool {
	return c.o.Ref.Namespace == g.sel.Namespace && g.clusterFilter(c.o.Ref.Name)
}

// isForeign reports whether an object belongs to a Cluster that is not selected. A selected Cluster
// may refer to such an object only because both Clusters use the same identity.
func (g *graph) isForeign(n *node) bool {
	name := cmp.Or(n.o.ClusterName, n.o.BoundCluster)
	if name == "" && !isShareable(n.o.Ref) {
		name = n.clusterAbove(0)
	}
	c := g.cluster(n.o.Ref.Namespace, name)
	return c != nil && !g.isSelected(c)
}

func (g *graph) classKeepReason(class *node) string {
	if class.o.Ref.Namespace != g.sel.Namespace {
		return "it is in another namespace"
	}
	if c := g.shared[class]; c != nil {
		return "it is also used by Cluster " + c.o.Ref.Namespace + "/" + c.o.Ref.Name
	}
	return ""
}

func (g *graph) includeBelow(n *node, part bool) {
	part = part || g.inSelectedCluster(n) && !pause.IsRoot(n.o.Ref)
	if n.included && (n.inCluster || !part) {
		return
	}
	n.included, n.inCluster = true, n.inCluster || part
	for _, child := range n.dependents {
		if pause.IsCluster(child.o.Ref) && !g.isSelected(child) || !part && g.isForeign(child) {
			continue
		}
		g.includeBelow(child, part)
	}
}

// assignLevels sets the levels of the members. It returns the members in or below a cycle of
// owners, which have no level.
func (g *graph) assignLevels() map[*node]bool {
	open := make(map[*node]bool) // without a level yet
	for _, n := range g.nodes {
		if n.included {
			open[n] = true
		}
	}
	isOpen := func(n *node) bool { return open[n] }
	for level := 0; ; level++ {
		var ready []*node
		for n := range open {
			if !slices.ContainsFunc(n.allOwners(), isOpen) {
				ready = append(ready, n)
			}
		}
		if len(ready) == 0 {
			return open
		}
		for _, n := range ready {
			n.level = level
			delete(open, n)
		}
	}
}

func (n *node) allOwners() []*node { return slices.Concat(n.owners, n.softOwners) }
