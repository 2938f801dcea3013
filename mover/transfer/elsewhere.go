package transfer

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube/object"
)

// elsewhere reads of other namespaces what the objects of a look name there, and what there names objects of the namespace of the move.
func (t *Transfer) elsewhere(ctx context.Context, w *world, own string, hash bool) error {
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
func (t *Transfer) named(w *world, from []object.Observed, own string, asked map[object.Ref]bool) (parts []listing) {
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
func (t *Transfer) bare(ctx context.Context, w *world, own string, hash bool, fresh func(object.Observed) bool) error {
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
func (t *Transfer) readAllowed(ctx context.Context, w *world, parts []listing, hash bool, wanted func(object.Observed) bool) error {
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
