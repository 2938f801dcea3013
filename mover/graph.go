package mover

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Selection is the part of a Spec that says which objects are meant.
type Selection struct {
	Namespace string
	Clusters  []string
	All       bool
}

// Chooses returns a function that says whether the selection chooses the Cluster of that name in its namespace.
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
	// Level is its depth below objects without owners among the members.
	Level int
	// Within are its owners among the members.
	Within []object.Owner
	// ClusterOf is the name of the Cluster it belongs to.
	ClusterOf string
	// Keep says why it is copied only; empty when it leaves the source.
	Keep string
	// Named: it is taken along only because an object of a namespace names it. Who may write that object chose it.
	Named bool
}

// Members is what a selection means in a world of observed objects.
type Members struct {
	Objects []Member // by level, then by reference
	// Left are objects near the selection that stay, and why.
	Left []Wait
	// Dropped are owner references that cannot travel, by the object that has them, and why.
	Dropped []Wait
	// Missing are objects that members name and that the source does not have, or has in another namespace where a copy of them would
	// act, each once, and which object names it. The target must have them.
	Missing []Wait
	// Hosted are control planes that run as workloads of the management cluster, and why they are judged so: a copy runs nothing.
	Hosted []Wait
	// Findings are what forbids to move the selection: what a member needs and would lose, and what belongs to a Cluster that moves
	// and would be left.
	Findings Findings
	// Stays are warnings about the other objects in Left.
	Stays Findings
	// Addresses are what forbids it because an address would leave its pool; a copy takes none away.
	Addresses Findings
	// Taken are what forbids it because a Cluster that stays would lose what it uses; a copy takes nothing away.
	Taken Findings
}

// clusterSecretSuffixes name the Secrets that Cluster API keeps for a cluster as <cluster>-<suffix>, owned or not.
func clusterSecretSuffixes() []string {
	return []string{"-apiserver-etcd-client", "-kubeconfig", "-ca", "-etcd", "-sa", "-proxy"}
}

// graph is a selection being worked out.
type graph struct {
	sel      Selection
	chooses  func(cluster string) bool
	byUID    map[types.UID]*node
	byRef    map[object.Ref]*node
	byName   map[types.NamespacedName][]*node
	nodes    []*node
	clusters []*node
	// shared holds a Cluster that uses a ClusterClass and is not selected, by class.
	shared map[*node]*node
}

type node struct {
	o      object.Observed
	owners []*node            // by ownerReference, present in this world
	soft   []*node            // owners by convention, for order and membership
	down   []*node            // inverse of both
	names  []naming           // what its fields name
	nameBy []*node            // which nodes name it
	open   []object.Reference // of its fields, those that lead to nothing in this world
	in     bool
	needed bool // by what moves
	named  bool // only a field of an object of a namespace takes it along
	part   bool // of a selected cluster: below it
	keep   string
	level  int
}

// Select works out which of the observed objects a selection means. The world is every object of the movable kinds in
// the selection's namespace and in those of its ClusterClasses, all Clusters everywhere, all objects of the whole
// cluster that are labelled for moving, and of other namespaces what these objects name and what names them. The rules are those of clusterctl's object graph, and what that leaves behind in
// silence is reported.
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
			// Order only: where its Cluster is not there, the add-on provider for Helm deletes it, paused or not, and uninstalls the chart.
			if c := g.cluster(n.o.Ref.Namespace, n.o.Binds); c != nil && !slices.Contains(n.owners, c) {
				n.soft = append(n.soft, c)
			}
		}
	}
}

// softOwner returns the owner by convention: of the binding of a cluster's resource sets, of a host that a machine uses, and of
// an object that Cluster API keeps for a Cluster or that has the label of one, if it has no owner references or is labelled to move
// whatever owns it. (A Cluster below its ClusterClass is handled apart: the class does not pull other clusters along.)
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

// labelled returns the Cluster that the label of an object names. The label of an object without a namespace may name any.
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

// owned reports whether an object has an owner beside itself.
func (n *node) owned() bool {
	return slices.ContainsFunc(n.o.Owners, func(o object.Owner) bool { return o.UID != n.o.UID })
}

// owns reports whether p is below n. The depth is bounded so that a circle of owners ends.
func (n *node) owns(p *node, depth int) bool {
	return depth < deepest && slices.ContainsFunc(p.owners, func(q *node) bool { return q == n || n.owns(q, depth+1) })
}

// secretOf is the Cluster that Cluster API keeps a Secret of that name for.
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

// needed: it is a Secret that Cluster API keeps for a selected Cluster.
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

// ofWholeCluster is why an object without a namespace is copied, and stays: other Clusters may use it.
const ofWholeCluster = "it belongs to the whole management cluster"

// include marks what moves: the roots that the selection names, and all below them.
func (g *graph) include() {
	for _, c := range g.clusters {
		if !g.selected(c) {
			continue
		}
		if class := g.class(c); class != nil {
			c.soft = append(c.soft, class) // order only: no way down from the class to its clusters
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

// foreign: it belongs to a cluster that was not selected, and is met only because both hang on the same identity.
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

// layer gives each member its level, and returns those in or below a circle of owners: no order suits them.
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
