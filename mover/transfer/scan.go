package transfer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// snapshot is one reading of the source: the facts about every object that a selection may mean.
type snapshot struct {
	mu      sync.Mutex
	objects []object.Observed
	hashes  map[object.Ref]string // of content; only when asked for, never of Secrets
	listed  map[part]bool
	at      time.Time // when it began
	// partial: what was empty at the look before was not looked at.
	partial bool
	// unseen are kinds that may not be listed in other namespaces.
	unseen []string
}

func newSnapshot() *snapshot {
	return &snapshot{hashes: make(map[object.Ref]string), listed: make(map[part]bool), at: time.Now()}
}

// has reports whether a kind was listed in a namespace.
func (w *snapshot) has(l listing) bool {
	kind := l.typ.GroupKind()
	return w.listed[part{kind, l.namespace}] || w.listed[part{kind, ""}]
}

func selection(s mover.Spec) mover.Selection {
	return mover.Selection{Namespace: s.Namespace, Clusters: s.Clusters, All: s.All}
}

// depth is how much a look reads.
type depth int

const (
	// occupied: only the kinds of which the look before found something, and ClusterClasses. What may have come to the others since
	// does not count: a look at everything follows before anything is decided of them.
	occupied depth = iota
	everyKind
	// hashed: every kind, and the hash of each content.
	hashed
)

// look reads the source once: the namespace of the move, those of its ClusterClasses, all Clusters (somebody
// else may use a class), what is labelled for moving in the whole cluster, and the credentials of that. Unless it is a look at what was
// there before, it also reads what these objects name in other namespaces, and what there names them.
func (t *Transfer) look(ctx context.Context, spec mover.Spec, depth depth) (*snapshot, error) {
	w := newSnapshot()
	clusterType, err := t.clusters()
	if err != nil {
		return nil, err
	}
	read := func(parts []listing) error {
		if depth == occupied {
			all := len(parts)
			parts = slices.DeleteFunc(parts, func(l listing) bool { return l.typ.GroupKind() != classKind && t.sizes.empty(t.Source, l) })
			w.partial = w.partial || len(parts) < all
		}
		return t.read(ctx, w, parts, depth == hashed, nil)
	}
	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(t.types)), func(kind string) bool { return kind == clusterType.GroupKind() })
	parts := []listing{{clusterType, ""}}
	for _, kind := range kinds {
		if typ := t.types[kind]; typ.Namespaced {
			parts = append(parts, listing{typ, spec.Namespace})
		} else {
			parts = append(parts, listing{typ, ""})
		}
	}
	if err := read(parts); err != nil {
		return nil, err
	}
	parts = nil
	for _, namespace := range classNamespaces(w.objects, spec) {
		for _, kind := range kinds {
			if typ := t.types[kind]; typ.Namespaced && !typ.Plain() {
				parts = append(parts, listing{typ, namespace})
			}
		}
	}
	if err := read(parts); err != nil {
		return nil, err
	}
	parts, wanted, err := t.credentials(ctx, w.objects, spec.Namespace)
	if err != nil {
		return nil, err
	}
	if err := t.read(ctx, w, parts, depth == hashed, wanted); err != nil || depth == occupied {
		return w, err
	}
	return w, t.elsewhere(ctx, w, spec.Namespace, depth == hashed)
}

// credentials are the Secrets in the namespaces of infrastructure providers. Those that an identity of the whole management
// cluster owns move with it, so they are not looked at where there is none. Those of the move's own namespace were read already.
// Where no infrastructure provider is recorded, they are looked for in all other namespaces; wanted then chooses those that an
// identity owns.
func (t *Transfer) credentials(ctx context.Context, objects []object.Observed, own string) (parts []listing, wanted func(object.Observed) bool, err error) {
	identities := make(map[types.UID]bool)
	for _, o := range objects {
		if o.Ref.Namespace == "" && o.Hierarchy {
			identities[o.UID] = true
		}
	}
	if len(identities) == 0 {
		return nil, nil, nil
	}
	providers, err := t.Source.Providers(ctx)
	if err != nil {
		return nil, nil, err
	}
	namespaces := make(map[string]bool)
	for _, p := range providers {
		if p.Type == clusterctlv1.InfrastructureProviderType {
			namespaces[p.Namespace] = true
		}
	}
	if len(namespaces) == 0 {
		return []listing{{t.types["Secret"], ""}}, func(o object.Observed) bool {
			owned := func(owner object.Owner) bool { return identities[owner.UID] }
			return o.Ref.Namespace != own && slices.ContainsFunc(o.Owners, owned)
		}, nil
	}
	delete(namespaces, own)
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		parts = append(parts, listing{t.types["Secret"], namespace})
	}
	return parts, nil, nil
}

// annotated reads again what the definitions of the kinds say of the pause: that may change while it is waited for.
func (t *Transfer) annotated(ctx context.Context) error {
	labelled, err := t.Source.Definitions(ctx)
	if err != nil {
		return err
	}
	for kind, typ := range t.types {
		t.types[kind] = typ.Annotated(labelled[typ.Definition()])
	}
	return nil
}

// clusters is the kind of Clusters at the source.
func (t *Transfer) clusters() (kube.Type, error) {
	typ, ok := t.types["Cluster."+object.CoreGroup]
	if !ok {
		return typ, final("install Cluster API in this cluster, or make the Move where it is", "the source does not serve Clusters of %s", object.CoreGroup)
	}
	return typ, nil
}

// listing is a kind in a namespace; "" is everywhere.
type listing struct {
	typ       kube.Type
	namespace string
}

func classNamespaces(objects []object.Observed, spec mover.Spec) []string {
	found := make(map[string]bool)
	chooses := selection(spec).Chooses()
	for _, o := range objects {
		f := o.Cluster
		if f == nil || o.Ref.Namespace != spec.Namespace || f.ClassNamespace == "" || f.ClassNamespace == spec.Namespace {
			continue
		}
		if chooses(o.Ref.Name) {
			found[f.ClassNamespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// read adds objects to a snapshot; wanted, which may be nil, chooses some of them.
func (t *Transfer) read(ctx context.Context, w *snapshot, parts []listing, hash bool, wanted func(object.Observed) bool) error {
	n := make(counted)
	for _, p := range parts {
		n.listed(t.Source, p)
		if wanted == nil {
			w.listed[part{p.typ.GroupKind(), p.namespace}] = true
		}
	}
	err := parallel(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		list := t.Source.List
		if p.typ.Plain() {
			list = t.Source.ListMetadata
		}
		return list(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			o := object.Observe(u)
			o.Movable = o.Movable || p.typ.Movable
			o.Hierarchy = o.Hierarchy || p.typ.Hierarchy
			o.KindBlocksMove = p.typ.BlockMove
			o.BlockMove = o.BlockMove || p.typ.BlockMove
			sum := ""
			if hash && !p.typ.Plain() {
				var err error
				if sum, err = mover.ContentHash(u); err != nil {
					return err
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			n.add(t.Source, p, o.Ref.Namespace)
			if wanted != nil && !wanted(o) {
				return nil
			}
			w.objects = append(w.objects, o)
			w.hashes[o.Ref] = sum
			return nil
		})
	})
	if err == nil {
		t.sizes.learn(n)
	}
	return err
}

// members looks at the source and works out what the move means.
func (t *Transfer) members(ctx context.Context, spec mover.Spec, depth depth) (mover.Members, *snapshot, error) {
	w, err := t.look(ctx, spec, depth)
	if err != nil {
		return mover.Members{}, nil, err
	}
	return t.withhold(spec.Namespace, mover.Select(w.objects, selection(spec))), w, nil
}

// withhold leaves the objects of other namespaces where they are, such as Secrets, ClusterClasses and their templates, unless the namespace
// may get them: who moves or backs up clusters of a namespace chooses where to, and could read there what RBAC does not let them read here.
func (t *Transfer) withhold(namespace string, members mover.Members) mover.Members {
	if t.Shares == nil {
		return members
	}
	members.Objects = slices.DeleteFunc(members.Objects, func(m mover.Member) bool {
		switch {
		case m.Named && m.Ref.Namespace != "" && m.Ref.Namespace != namespace:
			members.Missing = append(members.Missing, mover.Wait{Ref: m.Ref, Why: m.Keep + ", and what is in another namespace does not move with it"})
			return true
		case ofOthers(m.Ref, namespace) && !t.Shares(namespace):
			members.Left = append(members.Left, mover.Wait{Ref: m.Ref, Why: "it is in another namespace, which is not shared with namespace " + namespace})
			return true
		default:
			return false
		}
	})
	return members
}

// ofOthers reports whether an object is in another namespace than what moves.
func ofOthers(ref object.Ref, namespace string) bool {
	return ref.Namespace != "" && ref.Namespace != namespace
}

// share is how an operator lets a namespace have them.
const share = "have the operator of scute list the namespace in shareCredentialsWith of the chart (--share-credentials-with)"

// elsewhere reads of other namespaces what the objects of a look name there, and what there names objects of the namespace of the move.
func (t *Transfer) elsewhere(ctx context.Context, w *snapshot, own string, hash bool) error {
	have := make(map[object.Ref]bool, len(w.objects))
	for _, o := range w.objects {
		have[o.Ref] = true
	}
	fresh := func(o object.Observed) bool {
		first := !have[o.Ref]
		have[o.Ref] = true
		return first
	}
	asked := make(map[object.Ref]bool)
	for from := w.objects; len(from) > 0; {
		known := len(w.objects)
		parts := t.named(w, from, own, asked)
		err := t.readAllowed(ctx, w, parts, hash, func(o object.Observed) bool { return asked[o.Ref] && fresh(o) })
		if err != nil {
			return err
		}
		from = w.objects[known:]
	}
	if err := t.bare(ctx, w, own, hash, fresh); err != nil || t.command {
		return err // a backup takes nothing away
	}
	if !slices.ContainsFunc(w.objects, func(o object.Observed) bool { return o.Cluster != nil && o.Ref.Namespace != own }) {
		return nil
	}
	var parts []listing
	for _, typ := range t.types {
		if typ.Namespaced && !typ.Plain() && typ.Group != object.CoreGroup { // the kinds of Cluster API itself name nothing elsewhere
			parts = append(parts, listing{typ, ""})
		}
	}
	return t.readAllowed(ctx, w, parts, hash, func(o object.Observed) bool {
		names := func(r object.Reference) bool { return r.Ref.Namespace == own }
		return o.Ref.Namespace != own && slices.ContainsFunc(o.References, names) && fresh(o)
	})
}

// named are the kinds and namespaces of what objects name in namespaces that were not looked at; asked has each possible object.
func (t *Transfer) named(w *snapshot, from []object.Observed, own string, asked map[object.Ref]bool) (parts []listing) {
	added := make(map[part]bool)
	for _, o := range from {
		if o.Cluster != nil && o.Ref.Namespace != own {
			continue // it was listed for the ClusterClass that it uses
		}
		for _, r := range o.References {
			namespace := r.Ref.Namespace
			if namespace == "" || namespace == own || namespace == o.Ref.Namespace && isTemplate(o.Ref) && !asked[o.Ref] {
				continue // a template of a ClusterClass: what it names counts where the Cluster is
			}
			for _, typ := range t.types {
				ref := object.Ref{Group: typ.Group, Kind: typ.Kind, Namespace: namespace, Name: r.Ref.Name}
				l, p := listing{typ, namespace}, part{typ.GroupKind(), namespace}
				if !typ.Namespaced || w.has(l) || asked[ref] || r.Fits(typ.Group, typ.Kind) == 0 {
					continue
				}
				if asked[ref] = true; !added[p] {
					added[p], parts = true, append(parts, l)
				}
			}
		}
	}
	return parts
}

// bare looks in all namespaces for the Secrets that objects of the whole management cluster name without a namespace, if none of the
// namespaces that providers are known to be in has them.
func (t *Transfer) bare(ctx context.Context, w *snapshot, own string, hash bool, fresh func(object.Observed) bool) error {
	wanted := make(map[string]bool)
	for _, o := range w.objects {
		for _, r := range o.References {
			wanted[r.Ref.Name] = wanted[r.Ref.Name] || o.Ref.Namespace == "" && r.Ref.Namespace == "" && r.Credential()
		}
	}
	missing := false
	for _, o := range w.objects {
		if isSecret(o.Ref) && o.Ref.Namespace != own {
			delete(wanted, o.Ref.Name)
		}
	}
	for _, w := range wanted {
		missing = missing || w
	}
	if !missing {
		return nil
	}
	secrets := []listing{{t.types["Secret"], ""}}
	return t.readAllowed(ctx, w, secrets, hash, func(o object.Observed) bool { return wanted[o.Ref.Name] && fresh(o) })
}

// readAllowed reads what may be read, and notes what may not.
func (t *Transfer) readAllowed(ctx context.Context, w *snapshot, parts []listing, hash bool, wanted func(object.Observed) bool) error {
	return parallel(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		err := t.read(ctx, w, []listing{p}, hash, wanted)
		if !apierrors.IsForbidden(err) {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unseen = append(w.unseen, p.typ.GroupKind())
		return nil
	})
}
