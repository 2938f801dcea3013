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

// Chooses returns a function that reports whether the selection contains the Cluster with a name.
func (s Selection) Chooses() func(cluster string) bool {
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
	// Level is its depth below members without owners among the members.
	Level int
	// Within are its owners among the members.
	Within []object.Owner
	// ClusterOf is the name of its Cluster.
	ClusterOf string
	// Keep is why it is only copied; empty if it leaves the source.
	Keep string
	// Named means that it moves only because a namespaced object names it. Users who can write that object chose it.
	Named bool
}

// Members is the result of applying a selection to the observed objects.
type Members struct {
	Objects []Member // by level, then by reference
	// Left are objects near the selection that stay, and why.
	Left []Wait
	// Dropped are owner references that cannot be copied, by their object, and why.
	Dropped []Wait
	// Missing are objects that the target must have, each with a member that names it. The source lacks them, or has them in another namespace, where
	// a copy would be active.
	Missing []Wait
	// Hosted are control planes that run as workloads of the management cluster, and why scute concludes so. A copy of such an object runs nothing.
	Hosted []Wait
	// Findings are the reasons not to move the selection: a member would lose an object that it needs, or an object of a Cluster that moves would
	// stay.
	Findings Findings
	// Stays are warnings about the other objects in Left.
	Stays Findings
	// Addresses prevent a move because an address would leave its pool. They do not prevent a backup, which removes no address.
	Addresses Findings
	// Taken prevent a move because a Cluster that stays would lose an object that it uses. They do not prevent a backup, which removes nothing.
	Taken Findings
}

// clusterSecretSuffixes returns the suffixes of the Secrets that Cluster API keeps for a cluster as <cluster>-<suffix>, owned or not.
func clusterSecretSuffixes() []string {
	return []string{"-apiserver-etcd-client", "-kubeconfig", "-ca", "-etcd", "-sa", "-proxy"}
}

// graph computes the members of a selection.
type graph struct {
	sel      Selection
	chooses  func(cluster string) bool
	byUID    map[types.UID]*node
	byRef    map[object.Ref]*node
	byName   map[types.NamespacedName][]*node
	nodes    []*node
	clusters []*node
	// shared has a Cluster that uses a ClusterClass and is not selected, by class.
	shared map[*node]*node
}

type node struct {
	o      object.Observed
	owners []*node            // by ownerReference, if observed
	soft   []*node            // owners by convention, for order and membership
	down   []*node            // the inverse of owners and soft
	names  []naming           // the objects that its fields name
	nameBy []*node            // the nodes that name it
	open   []object.Reference // references to objects that were not observed
	in     bool
	needed bool // by an object that moves
	named  bool // moves only because a field of a namespaced object names it
	part   bool // of a selected Cluster, below it
	keep   string
	level  int
}

// Select returns the objects that a selection contains. The world must have every object of the movable kinds in the selection's namespace and in the
// namespaces of its ClusterClasses, all Clusters, all cluster-scoped objects that are labelled to move, and the objects of other namespaces that
// these name or that name them. The rules are those of clusterctl's object graph; objects that clusterctl omits silently are reported.
func Select(world []object.Observed, sel Selection) Members {
	g := newGraph(world, sel)
	g.connect()
	g.resolve()
	g.include()
	g.includeNamed()
	g.keepShared()
	cyclic := g.layer()
	return g.members(cyclic)
}

func newGraph(world []object.Observed, sel Selection) *graph {
	g := &graph{
		sel: sel, chooses: sel.Chooses(), shared: make(map[*node]*node),
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
		if class := g.class(c); class != nil && g.shared[class] == nil && !g.selected(c) {
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
				p.down = append(p.down, n)
			}
		}
	}
	for _, n := range g.nodes {
		if p := g.softOwner(n); p != nil && !slices.Contains(n.owners, p) {
			n.soft = append(n.soft, p)
			p.down = append(p.down, n)
		}
		if n.o.Ref.Group == object.AddonsGroup && n.o.Ref.Kind == "HelmReleaseProxy" {
			// Order only: without its Cluster, the add-on provider for Helm deletes the object, even if paused, and uninstalls the chart.
			if c := g.cluster(n.o.Ref.Namespace, n.o.Binds); c != nil && !slices.Contains(n.owners, c) {
				n.soft = append(n.soft, c)
			}
		}
	}
}

// softOwner returns the owner by convention of a ClusterResourceSetBinding, of a host that a machine uses, and of an object that Cluster API keeps
// for a Cluster or that has the label of a Cluster. Such an object must have no owner references, or be labelled to move regardless of its owners. (A
// Cluster below its ClusterClass is handled separately: the class does not include other clusters.)
func (g *graph) softOwner(n *node) *node {
	r := n.o.Ref
	if r.Group == object.AddonsGroup && r.Kind == "ClusterResourceSetBinding" {
		return g.cluster(r.Namespace, n.o.Binds)
	}
	if n.o.Consumer != nil && g.byRef[*n.o.Consumer] != nil && !n.owns(g.byRef[*n.o.Consumer], 0) {
		return g.byRef[*n.o.Consumer]
	}
	if n.owned() && !n.o.Movable && !n.o.Hierarchy {
		return nil
	}
	if c := g.secretOf(r); c != nil {
		return c
	}
	if c := g.labelled(n); c != nil && r.Namespace != "" && !pause.IsRoot(r) && !n.owns(c, 0) {
		return c
	}
	return nil
}

// labelled returns the Cluster that the label of an object names, in the selection's namespace if the object is cluster-scoped.
func (g *graph) labelled(n *node) *node {
	if n.o.ClusterName == "" || pause.IsCluster(n.o.Ref) || n.o.Ref.Group == object.OwnGroup {
		return nil
	}
	return g.cluster(cmp.Or(n.o.Ref.Namespace, g.sel.Namespace), n.o.ClusterName)
}

// belongs reports whether an object has the label of a Cluster that moves.
func (g *graph) belongs(n *node) bool {
	c := g.labelled(n)
	return c != nil && g.selected(c)
}

// owned reports whether an object has an owner other than itself.
func (n *node) owned() bool {
	return slices.ContainsFunc(n.o.Owners, func(o object.Owner) bool { return o.UID != n.o.UID })
}

// owns reports whether p is below n. The depth is limited because owners may form a cycle.
func (n *node) owns(p *node, depth int) bool {
	return depth < deepest && slices.ContainsFunc(p.owners, func(q *node) bool { return q == n || n.owns(q, depth+1) })
}

// secretOf returns the Cluster for which Cluster API keeps a Secret with this name.
func (g *graph) secretOf(r object.Ref) *node {
	if r.Group != "" || r.Kind != "Secret" {
		return nil
	}
	for _, suffix := range clusterSecretSuffixes() {
		if name, ok := strings.CutSuffix(r.Name, suffix); ok {
			if c := g.cluster(r.Namespace, name); c != nil {
				return c
			}
		}
	}
	return nil
}

// needed reports whether an object is a Secret that Cluster API keeps for a selected Cluster.
func (g *graph) needed(n *node) bool {
	c := g.secretOf(n.o.Ref)
	return c != nil && g.selected(c)
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

// ofWholeCluster is why a cluster-scoped object is copied and stays: other Clusters may use it.
const ofWholeCluster = "it belongs to the whole management cluster"

// include marks the roots that the selection names, and all objects below them.
func (g *graph) include() {
	for _, c := range g.clusters {
		if !g.selected(c) {
			continue
		}
		if class := g.class(c); class != nil {
			c.soft = append(c.soft, class) // order only: descending from the class must not reach other Clusters
			g.descend(class, false)
		}
		g.descend(c, true)
	}
	for _, n := range g.nodes {
		r := n.o.Ref
		switch {
		case r.Namespace == "" && n.o.Hierarchy:
			n.keep = ofWholeCluster
			g.descend(n, false)
		case r.Namespace == "" && (n.o.Movable || g.belongs(n)):
			n.in, n.keep = true, ofWholeCluster
		case r.Namespace != g.sel.Namespace || pause.IsCluster(r):
		case g.belongs(n) && (n.o.Movable || n.o.Hierarchy || !n.owned()), g.sel.All && (pause.IsRoot(r) || n.o.Hierarchy):
			g.descend(n, false)
		case n.o.Movable && (g.sel.All || g.needed(n)):
			n.in = true
		}
	}
}

func (g *graph) selected(c *node) bool {
	return c.o.Ref.Namespace == g.sel.Namespace && g.chooses(c.o.Ref.Name)
}

// foreign reports whether an object belongs to a Cluster that is not selected, and is reached only because both Clusters use the same identity.
func (g *graph) foreign(n *node) bool {
	name := cmp.Or(n.o.ClusterName, n.o.Binds)
	if name == "" && !shareable(n.o.Ref) {
		name = g.clusterOf(n)
	}
	c := g.cluster(n.o.Ref.Namespace, name)
	return c != nil && !g.selected(c)
}

func (g *graph) classStays(class *node) string {
	if class.o.Ref.Namespace != g.sel.Namespace {
		return "it lives in another namespace"
	}
	if c := g.shared[class]; c != nil {
		return "it is also used by Cluster " + c.o.Ref.Namespace + "/" + c.o.Ref.Name
	}
	return ""
}

func (g *graph) descend(n *node, part bool) {
	part = part || g.belongs(n) && !pause.IsRoot(n.o.Ref)
	if n.in && (n.part || !part) {
		return
	}
	n.in, n.part = true, n.part || part
	for _, child := range n.down {
		if pause.IsCluster(child.o.Ref) && !g.selected(child) || !part && g.foreign(child) {
			continue
		}
		g.descend(child, part)
	}
}

// layer sets the level of each member. It returns the members in or below a cycle of owners, because these have no order.
func (g *graph) layer() map[*node]bool {
	waiting := make(map[*node]int)
	var ready []*node
	for _, n := range g.nodes {
		if !n.in {
			continue
		}
		for _, p := range n.above() {
			if p.in {
				waiting[n]++
			}
		}
		if waiting[n] == 0 {
			ready = append(ready, n)
		}
	}
	below := g.below()
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		for _, child := range below[n] {
			child.level = max(child.level, n.level+1)
			if waiting[child]--; waiting[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	cyclic := make(map[*node]bool)
	for n, left := range waiting {
		if left > 0 {
			cyclic[n] = true
		}
	}
	return cyclic
}

func (n *node) above() []*node { return slices.Concat(n.owners, n.soft) }

func (g *graph) below() map[*node][]*node {
	below := make(map[*node][]*node)
	for _, n := range g.nodes {
		if !n.in {
			continue
		}
		for _, p := range n.above() {
			if p.in {
				below[p] = append(below[p], n)
			}
		}
	}
	return below
}
