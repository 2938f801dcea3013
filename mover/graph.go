package mover

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Selection is the part of a Spec that selects objects.
type Selection struct {
	Namespace string
	Clusters  []string
	All       bool
}

// ClusterFilter returns a function that reports whether the selection contains the Cluster with a name.
func (s Selection) ClusterFilter() func(cluster string) bool {
	if s.All {
		return func(string) bool { return true }
	}
	named := make(map[string]bool, len(s.Clusters))
	for _, name := range s.Clusters {
		named[name] = true
	}
	return func(cluster string) bool { return named[cluster] }
}

// Member is an object that moves.
type Member struct {
	object.Observed
	// Level is 0 for a member without owners among the members. Otherwise it is one more than the
	// highest level of these owners.
	Level int
	// MemberOwners are its owners among the members.
	MemberOwners []object.Owner
	// OwningCluster is the name of its Cluster.
	OwningCluster string
	// KeepReason is why it is only copied; empty if it leaves the source.
	KeepReason string
	// ByReference means that it moves only because a namespaced object names it. Users who can
	// write that object chose it.
	ByReference bool
}

// Members is the result of applying a selection to the observed objects.
type Members struct {
	Objects []Member // by level, then by reference
	// Excluded are objects that are related to the selection but stay at the source, and why.
	Excluded []ObjectReason
	// DroppedOwners are owner references that cannot be copied, by their object, and why.
	DroppedOwners []ObjectReason
	// Missing are objects that the target must have, each with a member that names it. The source
	// lacks them, or has them in another namespace, where a copy would be active.
	Missing []ObjectReason
	// Hosted are control planes that run as workloads of the management cluster, and why scute
	// concludes so. A copy of such an object runs nothing.
	Hosted []ObjectReason
	// Findings are the reasons not to move the selection: a member would lose an object that it
	// needs, or an object of a Cluster that moves would stay.
	Findings Findings
	// ExclusionWarnings are warnings about the other objects in Excluded.
	ExclusionWarnings Findings
	// AddressFindings prevent a move because an address would leave its pool. They do not prevent a
	// backup, which removes no address.
	AddressFindings Findings
	// InUseFindings prevent a move because a Cluster that stays would lose an object that it uses.
	// They do not prevent a backup, which removes nothing.
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
	// shared has a Cluster that uses a ClusterClass and is not selected, by class.
	shared map[*node]*node
}

type node struct {
	o            object.Observed
	owners       []*node            // by ownerReference, if observed
	softOwners   []*node            // owners by convention, for order and membership
	dependents   []*node            // the inverse of owners and soft
	references   []reference        // the objects that its fields name
	referencedBy []*node            // the nodes that name it
	unresolved   []object.Reference // references to objects that were not observed
	included     bool
	referenced   bool // by an object that moves
	byReference  bool // moves only because a field of a namespaced object names it
	inCluster    bool // of a selected Cluster, below it
	keepReason   string
	level        int
}

// Select returns the objects that a selection contains. The world must have every object of the
// movable kinds in the selection's namespace and in the namespaces of its ClusterClasses, all
// Clusters, all cluster-scoped objects that are labelled to move, and the objects of other
// namespaces that reference these objects or are referenced by them. Select follows the rules of
// clusterctl's object graph, and reports objects that clusterctl omits silently.
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
			// Order only: without its Cluster, the add-on provider for Helm deletes the object,
			// even if paused, and uninstalls the chart.
			if c := g.cluster(n.o.Ref.Namespace, n.o.BoundCluster); c != nil && !slices.Contains(n.owners, c) {
				n.softOwners = append(n.softOwners, c)
			}
		}
	}
}

// softOwner returns the owner by convention of a ClusterResourceSetBinding, of a host that a
// machine uses, and of an object that Cluster API keeps for a Cluster or that has the label of a
// Cluster. Such an object must have no owner references, or be labelled to move regardless of its
// owners. (A Cluster below its ClusterClass is handled separately: the class does not include other
// clusters.)
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

// labelledCluster returns the Cluster that the label of an object names, in the selection's
// namespace if the object is cluster-scoped.
func (g *graph) labelledCluster(n *node) *node {
	if n.o.ClusterName == "" || pause.IsCluster(n.o.Ref) || n.o.Ref.Group == object.OwnGroup {
		return nil
	}
	return g.cluster(cmp.Or(n.o.Ref.Namespace, g.sel.Namespace), n.o.ClusterName)
}

// inSelectedCluster reports whether an object has the label of a Cluster that moves.
func (g *graph) inSelectedCluster(n *node) bool {
	c := g.labelledCluster(n)
	return c != nil && g.isSelected(c)
}

// hasOwner reports whether an object has an owner other than itself.
func (n *node) hasOwner() bool {
	return slices.ContainsFunc(n.o.Owners, func(o object.Owner) bool { return o.UID != n.o.UID })
}

// isAncestorOf reports whether p is below n. The depth is limited because owners may form a cycle.
func (n *node) isAncestorOf(p *node, depth int) bool {
	return depth < maxDepth && slices.ContainsFunc(p.owners, func(q *node) bool { return q == n || n.isAncestorOf(q, depth+1) })
}

// secretCluster returns the Cluster for which Cluster API keeps a Secret with this name, CLUSTER-SUFFIX, owned or not.
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

// isClusterSecret reports whether an object is a Secret that Cluster API keeps for a selected Cluster.
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

// clusterScopedReason is why a cluster-scoped object is copied and stays: other Clusters may use it.
const clusterScopedReason = "it is cluster-scoped and other Clusters may use it"

// include marks the roots that the selection names, and all objects below them.
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

// isForeign reports whether an object belongs to a Cluster that is not selected, and is reached
// only because both Clusters use the same identity.
func (g *graph) isForeign(n *node) bool {
	name := cmp.Or(n.o.ClusterName, n.o.BoundCluster)
	if name == "" && !isShareable(n.o.Ref) {
		name = g.clusterOf(n)
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

// assignLevels sets the level of each member. It returns the members in or below a cycle of owners,
// because these have no order.
func (g *graph) assignLevels() map[*node]bool {
	open := make(map[*node]bool) // the members without a level yet
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
