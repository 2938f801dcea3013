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

// snapshot contains the result of reading the source once: every object that a selection may
// include.
type snapshot struct {
	mu      sync.Mutex
	objects []object.Observed
	members mover.Members         // of the move
	hashes  map[object.Ref]string // of contents, at depth hashed only; never of Secrets
	listed  map[listingKey]bool
	at      time.Time // when the reading began
	// partial means that kinds without objects in the previous listing were skipped.
	partial bool
	// forbidden contains the kinds that may not be listed in other namespaces.
	forbidden []string
}

func newSnapshot() *snapshot {
	return &snapshot{hashes: make(map[object.Ref]string), listed: make(map[listingKey]bool), at: time.Now()}
}

func (w *snapshot) isListed(l listing) bool {
	return w.listed[l.key()] || w.listed[listing{side: l.side, typ: l.typ}.key()]
}

func selection(s mover.Spec) mover.Selection {
	return mover.Selection{Namespace: s.Namespace, Clusters: s.Clusters, All: s.All}
}

// depth determines how much readSnapshot reads.
type depth int

const (
	// nonEmptyKinds reads only ClusterClasses and kinds that had objects in the previous listing.
	// It must not be used for a decision about the other kinds.
	nonEmptyKinds depth = iota
	everyKind
	// hashed also hashes the content of each object.
	hashed
)

// readSnapshot reads the source once: the movable kinds in the namespace of the move and the
// namespaces of its ClusterClasses, the Clusters of all namespaces (because they may use such a
// class), cluster-scoped objects, and Secrets of cluster-scoped identities. Except at depth
// nonEmptyKinds, it also reads objects of other namespaces that these objects refer to or that
// refer to the namespace of the move.
func (t *Transfer) readSnapshot(ctx context.Context, spec mover.Spec, depth depth) (*snapshot, error) {
	w := newSnapshot()
	clusterType, err := t.clusterType()
	if err != nil {
		return nil, err
	}
	read := func(parts []listing) error {
		if depth == nonEmptyKinds {
			all := len(parts)
			parts = slices.DeleteFunc(parts, func(l listing) bool {
				n, known := t.sizes.count(l)
				return l.typ.GroupKind() != classKind && known && n == 0
			})
			w.partial = w.partial || len(parts) < all
		}
		return t.read(ctx, w, parts, depth == hashed, nil)
	}
	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(t.sourceTypes)), func(kind string) bool { return kind == clusterType.GroupKind() })
	parts := listingsIn(t.Source, clusterType, "")
	for _, kind := range kinds {
		parts = append(parts, listingsIn(t.Source, t.sourceTypes[kind], spec.Namespace)...)
	}
	if err := read(parts); err != nil {
		return nil, err
	}
	parts = nil
	for _, namespace := range classNamespaces(w.objects, spec) {
		for _, kind := range kinds {
			if typ := t.sourceTypes[kind]; typ.Namespaced && !typ.IsCore() {
				parts = append(parts, listing{side: t.Source, typ: typ, namespace: namespace})
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
	if err := t.read(ctx, w, parts, depth == hashed, wanted); err != nil || depth == nonEmptyKinds {
		return w, err
	}
	return w, t.readReferenced(ctx, w, spec.Namespace, depth == hashed)
}

// credentials returns the list requests for Secrets in the namespaces of infrastructure providers,
// because Secrets that a cluster-scoped identity owns move with it. It returns none if there is no
// such identity. If no infrastructure provider is recorded, it returns a request for all
// namespaces, and wanted, which selects the Secrets that an identity owns.
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
		return listingsIn(t.Source, t.sourceTypes["Secret"], ""), func(o object.Observed) bool {
			owned := func(owner object.Owner) bool { return identities[owner.UID] }
			return o.Ref.Namespace != own && slices.ContainsFunc(o.Owners, owned)
		}, nil
	}
	delete(namespaces, own)
	return listingsIn(t.Source, t.sourceTypes["Secret"], slices.Sorted(maps.Keys(namespaces))...), nil, nil
}

// refreshAnnotations reads the annotations of CustomResourceDefinitions about acknowledging a pause
// again, because they may change during the wait.
func (t *Transfer) refreshAnnotations(ctx context.Context) error {
	labelled, err := t.Source.Definitions(ctx)
	if err != nil {
		return err
	}
	for kind, typ := range t.sourceTypes {
		t.sourceTypes[kind] = typ.WithAnnotations(labelled[typ.DefinitionName()])
	}
	return nil
}

func (t *Transfer) clusterType() (kube.Type, error) {
	typ, ok := t.sourceTypes["Cluster."+object.CoreGroup]
	if !ok {
		return typ, finalError("install Cluster API in this cluster, or create the Move in a cluster that has it",
			"the source does not serve Clusters of %s", object.CoreGroup)
	}
	return typ, nil
}

func classNamespaces(objects []object.Observed, spec mover.Spec) []string {
	found := make(map[string]bool)
	chooses := selection(spec).ClusterFilter()
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

func (t *Transfer) read(ctx context.Context, w *snapshot, parts []listing, hash bool, wanted func(object.Observed) bool) error {
	for i, p := range parts {
		parts[i].full = !p.typ.IsCore()
		if wanted == nil {
			w.listed[p.key()] = true
		}
	}
	return t.list(ctx, parts, func(p listing, u *unstructured.Unstructured) error {
		o := object.Observe(u)
		o.Movable = o.Movable || p.typ.Movable
		o.Hierarchy = o.Hierarchy || p.typ.Hierarchy
		o.KindBlocksMove = p.typ.BlockMove
		o.BlockMove = o.BlockMove || p.typ.BlockMove
		sum := ""
		if hash && p.full {
			var err error
			if sum, err = mover.ContentHash(u); err != nil {
				return err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if wanted == nil || wanted(o) {
			w.objects = append(w.objects, o)
			w.hashes[o.Ref] = sum
		}
		return nil
	})
}

func (t *Transfer) members(ctx context.Context, spec mover.Spec, depth depth) (mover.Members, *snapshot, error) {
	w, err := t.readSnapshot(ctx, spec, depth)
	if err != nil {
		return mover.Members{}, nil, err
	}
	w.members = t.excludeUnshared(spec.Namespace, mover.Select(w.objects, selection(spec)))
	return w.members, w, nil
}

// excludeUnshared excludes objects of other namespaces (Secrets, ClusterClasses, templates) that
// are not shared with the namespace. Its users choose the destination, where they could read
// objects that RBAC hides from them here.
func (t *Transfer) excludeUnshared(namespace string, members mover.Members) mover.Members {
	if t.Shares == nil {
		return members
	}
	members.Objects = slices.DeleteFunc(members.Objects, func(m mover.Member) bool {
		switch {
		case m.ByReference && m.Ref.Namespace != "" && m.Ref.Namespace != namespace:
			members.Missing = append(members.Missing, mover.ObjectReason{Ref: m.Ref, Reason: m.KeepReason +
				", but it is in another namespace and is not moved"})
			return true
		case isElsewhere(m.Ref, namespace) && !t.Shares(namespace):
			members.Excluded = append(members.Excluded, mover.ObjectReason{Ref: m.Ref, Reason: "it is in another namespace, which is not shared with namespace " + namespace})
			return true
		default:
			return false
		}
	})
	return members
}

func isElsewhere(ref object.Ref, namespace string) bool {
	return ref.Namespace != "" && ref.Namespace != namespace
}

const shareAdvice = "ask the operator of scute to add the namespace to shareCredentialsWith of the chart (--share-credentials-with)"

// readReferenced adds to the snapshot the objects of other namespaces that refer to the move's
// namespace, or that objects of the snapshot refer to.
func (t *Transfer) readReferenced(ctx context.Context, w *snapshot, own string, hash bool) error {
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
		parts := t.referencedListings(w, from, own, asked)
		err := t.readAllowed(ctx, w, parts, hash, func(o object.Observed) bool { return asked[o.Ref] && fresh(o) })
		if err != nil {
			return err
		}
		from = w.objects[known:]
	}
	if err := t.searchUnqualified(ctx, w, own, hash, fresh); err != nil || t.command {
		return err // a backup deletes nothing
	}
	if !slices.ContainsFunc(w.objects, func(o object.Observed) bool { return o.Cluster != nil && o.Ref.Namespace != own }) {
		return nil
	}
	var parts []listing
	for _, typ := range t.sourceTypes {
		if typ.Namespaced && !typ.IsCore() && typ.Group != object.CoreGroup { // Cluster API's own kinds do not refer to other namespaces
			parts = append(parts, listing{side: t.Source, typ: typ})
		}
	}
	return t.readAllowed(ctx, w, parts, hash, func(o object.Observed) bool {
		names := func(r object.Reference) bool { return r.Ref.Namespace == own }
		return o.Ref.Namespace != own && slices.ContainsFunc(o.References, names) && fresh(o)
	})
}

// referencedListings returns list requests for the objects that the objects in from refer to, in
// namespaces that were not listed. It adds every object that a reference may mean to asked.
func (t *Transfer) referencedListings(w *snapshot, from []object.Observed, own string, asked map[object.Ref]bool) (parts []listing) {
	added := make(map[listingKey]bool)
	for _, o := range from {
		if o.Cluster != nil && o.Ref.Namespace != own {
			continue // listed only to find users of ClusterClasses
		}
		for _, r := range o.References {
			namespace := r.Ref.Namespace
			if namespace == "" || namespace == own || namespace == o.Ref.Namespace && isTemplate(o.Ref) && !asked[o.Ref] {
				continue // a reference of a ClusterClass's template applies to the Cluster's namespace
			}
			for _, typ := range t.sourceTypes {
				ref := object.Ref{Group: typ.Group, Kind: typ.Kind, Namespace: namespace, Name: r.Ref.Name}
				l := listing{side: t.Source, typ: typ, namespace: namespace}
				if !typ.Namespaced || w.isListed(l) || asked[ref] || r.MatchScore(typ.Group, typ.Kind) == 0 {
					continue
				}
				if asked[ref] = true; !added[l.key()] {
					added[l.key()], parts = true, append(parts, l)
				}
			}
		}
	}
	return parts
}

// searchUnqualified adds to the snapshot the Secrets of all namespaces that cluster-scoped objects
// name without a namespace, if they were not found in the providers' namespaces.
func (t *Transfer) searchUnqualified(ctx context.Context, w *snapshot, own string, hash bool, fresh func(object.Observed) bool) error {
	wanted := make(map[string]bool)
	for _, o := range w.objects {
		for _, r := range o.References {
			if o.Ref.Namespace == "" && r.Ref.Namespace == "" && r.IsCredential() {
				wanted[r.Ref.Name] = true
			}
		}
	}
	for _, o := range w.objects {
		if isSecret(o.Ref) && o.Ref.Namespace != own {
			delete(wanted, o.Ref.Name)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	secrets := listingsIn(t.Source, t.sourceTypes["Secret"], "")
	return t.readAllowed(ctx, w, secrets, hash, func(o object.Observed) bool { return wanted[o.Ref.Name] && fresh(o) })
}

// readAllowed makes each list request of parts. If a request is forbidden, it skips the request and
// records its kind in the snapshot.
func (t *Transfer) readAllowed(ctx context.Context, w *snapshot, parts []listing, hash bool, wanted func(object.Observed) bool) error {
	return kube.ForEach(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		err := t.read(ctx, w, []listing{p}, hash, wanted)
		if !apierrors.IsForbidden(err) {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.forbidden = append(w.forbidden, p.typ.GroupKind())
		return nil
	})
}
