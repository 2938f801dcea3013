package transfer

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube/object"
)

// These are the groups of the kinds in random worlds.
const (
	infraGroup     = "infrastructure.cluster.x-k8s.io"
	planeGroup     = "controlplane.cluster.x-k8s.io"
	bootstrapGroup = "bootstrap.cluster.x-k8s.io"
	addressGroup   = "ipam.cluster.x-k8s.io"
)

// realKind is a kind of Cluster API or of a provider, with the labels of its definition.
type realKind struct {
	fakeKind

	labels []string
}

// realKinds returns kinds of providers, with the labels of their definitions as published. The fake API server serves
// one version of each group.
func realKinds() (kinds []realKind) {
	add := func(group, version string, namespaced bool, names string, labels ...string) {
		for _, name := range strings.Fields(names) {
			kinds = append(kinds, realKind{fakeKind{group, version, name, strings.ToLower(name) + "s", namespaced}, labels})
		}
	}
	const moves, hierarchy = clusterctlv1.ClusterctlLabel, object.MoveHierarchyLabel
	add(object.CoreGroup, "v1beta2", true, "MachineDeployment MachineHealthCheck", moves)
	add(planeGroup, "v1beta2", true, "KubeadmControlPlane KubeadmControlPlaneTemplate", moves)
	add(planeGroup, "v1beta2", true, "K0sControlPlane", moves)
	add(bootstrapGroup, "v1beta2", true, "KubeadmConfig KubeadmConfigTemplate", moves)
	add(object.AddonsGroup, "v1beta2", true, "ClusterResourceSet ClusterResourceSetBinding", moves)
	add(addressGroup, "v1beta2", true, "IPAddressClaim IPAddress", moves)
	add(addressGroup, "v1beta2", true, "InClusterIPPool", moves)
	add(addressGroup, "v1beta2", false, "GlobalInClusterIPPool", moves)
	for _, p := range providers() {
		add(infraGroup, "v1beta2", true, p.prefix+"Cluster "+p.prefix+"ClusterTemplate "+p.prefix+"Machine "+p.prefix+"MachineTemplate", moves)
	}
	add(infraGroup, "v1beta2", false, "AWSClusterStaticIdentity", moves, hierarchy)
	add(infraGroup, "v1beta2", true, "AzureClusterIdentity", moves, hierarchy)
	add(infraGroup, "v1beta2", false, "VSphereClusterIdentity", moves, hierarchy)
	add(infraGroup, "v1beta2", true, "VSphereVM Metal3DataTemplate", moves)
	add("metal3.io", "v1alpha1", true, "BareMetalHost", moves, hierarchy)
	add("clusterctl.cluster.x-k8s.io", "v1alpha3", true, "Provider")
	add("external-secrets.io", "v1", true, "ExternalSecret")
	return kinds
}

// realProvider is the prefix of an infrastructure provider's kinds, and its namespace.
type realProvider struct{ prefix, namespace string }

func providers() []realProvider {
	return []realProvider{
		{"AWS", "capa-system"},
		{"Azure", "capz-system"},
		{"GCP", "capg-system"},
		{"VSphere", "capv-system"},
		{"Metal3", "capm3-system"},
		{"OpenStack", "capo-system"},
		{"Remote", "k0smotron-system"},
	}
}

// randomObject is an object of a random world.
type randomObject struct {
	ref     object.Ref
	uid     types.UID
	content obj
	owners  []*randomObject
	// users has the Clusters that need it, as namespace/name: their controllers read it, or act on the thing that it
	// represents.
	users map[string]bool
	// byOwner has the users that only an owner reference shows.
	byOwner []string
	// active marks an object whose controller acts on the thing that it represents, so that it must
	// not be on both sides.
	active bool
}

// randomCluster is the content of a management cluster.
type randomCluster struct {
	t        *rapid.T
	kinds    map[string]fakeKind
	objects  []*randomObject
	clusters []*randomObject
	byRef    map[object.Ref]*randomObject
}

// newRandomCluster draws one to three Clusters in namespace fleet, maybe one in another namespace, and their objects.
func newRandomCluster(t *rapid.T) *randomCluster {
	w := &randomCluster{t: t, kinds: make(map[string]fakeKind), byRef: make(map[object.Ref]*randomObject)}
	for _, k := range fakeKinds() {
		w.kinds[k.kind] = k
	}
	for _, k := range realKinds() {
		w.kinds[k.kind] = k.fakeKind
	}
	usual := rapid.SampledFrom(providers()).Draw(t, "provider") // several Clusters of one provider share most
	n := rapid.IntRange(1, 3).Draw(t, "clusters")
	names := []string{"fleet/a", "fleet/b", "fleet/c"}[:n]
	if w.chance("elsewhere", 4) {
		names = append(names, "other/d")
	}
	for _, name := range names {
		p := usual
		if w.chance("another provider", 4) {
			p = rapid.SampledFrom(providers()).Draw(t, "its provider")
		}
		namespace, name, _ := strings.Cut(name, "/")
		w.cluster(namespace, name, p)
	}
	w.resourceSet()
	w.noise()
	for range rapid.IntRange(0, 3).Draw(t, "oddities") {
		w.oddity()
	}
	return w
}

// chance returns true in one of n cases.
func (w *randomCluster) chance(what string, n int) bool {
	return rapid.IntRange(1, n).Draw(w.t, what) == 1
}

// add returns an object, which it creates unless another Cluster already shares it.
func (w *randomCluster) add(kind, namespace, name string, of *randomObject, owners ...*randomObject) *randomObject {
	k, ok := w.kinds[kind]
	if !ok {
		panic("no kind " + kind)
	}
	if !k.namespaced {
		namespace = ""
	}
	ref := object.Ref{Group: k.group, Kind: kind, Namespace: namespace, Name: name}
	o := w.byRef[ref]
	if o == nil {
		o = &randomObject{ref: ref, uid: types.UID(fmt.Sprintf("uid-%03d", len(w.objects))), users: make(map[string]bool)}
		o.content = obj{"apiVersion": k.apiVersion(), "kind": kind}
		o.active = k.group != "" && !strings.HasSuffix(kind, "Template") && !strings.HasSuffix(kind, "Identity") && !slices.Contains([]string{"ClusterClass", "ClusterResourceSet"}, kind)
		w.objects, w.byRef[ref] = append(w.objects, o), o
	}
	if of != nil {
		o.users[of.ref.Namespace+"/"+of.ref.Name] = true
	}
	for _, owner := range owners {
		if !slices.Contains(o.owners, owner) {
			o.owners = append(o.owners, owner)
		}
	}
	return o
}

// part adds an object below a Cluster, with its label.
func (w *randomCluster) part(kind, name string, c *randomObject, owners ...*randomObject) *randomObject {
	o := w.add(kind, c.ref.Namespace, name, c, owners...)
	o.label("cluster.x-k8s.io/cluster-name", c.ref.Name)
	return o
}

func (o *randomObject) meta() obj {
	meta, _ := o.content["metadata"].(obj)
	if meta == nil {
		meta = obj{}
		o.content["metadata"] = meta
	}
	return meta
}

func (o *randomObject) label(key, value string) {
	labels, _ := o.meta()["labels"].(obj)
	if labels == nil {
		labels = obj{}
		o.meta()["labels"] = labels
	}
	labels[key] = value
}

func (o *randomObject) has(label string) bool {
	labels, _ := o.meta()["labels"].(obj)
	_, ok := labels[label]
	return ok
}

// set sets a field by its path.
func (o *randomObject) set(value any, path ...string) {
	at := o.content
	for _, field := range path[:len(path)-1] {
		next, _ := at[field].(obj)
		if next == nil {
			next = obj{}
			at[field] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// reference returns a reference to the object.
func (o *randomObject) reference() obj {
	return obj{"apiGroup": o.ref.Group, "kind": o.ref.Kind, "name": o.ref.Name}
}

// object returns the object as an API server has it.
func (o *randomObject) object() *unstructured.Unstructured {
	u := (&unstructured.Unstructured{Object: o.content}).DeepCopy()
	u.SetName(o.ref.Name)
	u.SetNamespace(o.ref.Namespace)
	u.SetUID(o.uid)
	var owners []any
	for _, p := range o.owners {
		k, _, _ := unstructured.NestedString(p.content, "apiVersion")
		owners = append(owners, obj{"apiVersion": k, "kind": p.ref.Kind, "name": p.ref.Name, "uid": string(p.uid)})
	}
	if owners != nil {
		_ = unstructured.SetNestedSlice(u.Object, owners, "metadata", "ownerReferences")
	}
	return u
}
