package transfer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// draft writes down every object that moves, with its UID, resource version and content hash, owners first.
func (t *Transfer) draft(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	items, left, err := t.items(ctx, s)
	if err != nil {
		return nil, err
	}
	return mover.Drafted{Items: items, Left: left}, nil
}

func (t *Transfer) items(ctx context.Context, s *mover.State) ([]mover.Item, []mover.Wait, error) {
	members, w, err := t.members(ctx, s.Spec, true)
	if err != nil {
		return nil, nil, err
	}
	if err := stillHeld(s, members); err != nil && !s.Spec.DryRun {
		return nil, nil, err
	}
	if err := t.hashConfigMaps(ctx, members, w); err != nil {
		return nil, nil, err
	}
	items := make([]mover.Item, 0, len(members.Objects))
	for _, m := range members.Objects {
		items = append(items, mover.ItemOf(m, w.hashes[m.Ref]))
	}
	return items, members.Left, nil
}

// hashConfigMaps reads the few ConfigMaps that move: they are listed by metadata only, because a namespace may hold
// many that have nothing to do with it.
func (t *Transfer) hashConfigMaps(ctx context.Context, members mover.Members, w *world) error {
	var refs []object.Ref
	for _, m := range members.Objects {
		if m.Ref.GroupKind() == "ConfigMap" {
			refs = append(refs, m.Ref)
		}
	}
	type hashed struct {
		ref object.Ref
		sum string
	}
	return each(ctx, t.workers(), refs, func(ctx context.Context, ref object.Ref) (hashed, error) {
		u, err := t.Source.Get(ctx, t.types["ConfigMap"], ref.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			return hashed{ref: ref}, nil
		}
		if err != nil {
			return hashed{}, err
		}
		sum, err := mover.ContentHash(u)
		return hashed{ref, sum}, err
	}, func(list []hashed) error {
		for _, h := range list {
			w.hashes[h.ref] = h.sum
		}
		return nil
	})
}

// drift compares the source as it is with the plan, and names what changed, came or went.
func drift(plan, now []mover.Item) []mover.Wait {
	var found []mover.Wait
	planned := make(map[object.Ref]mover.Item, len(plan))
	for _, item := range plan {
		planned[item.Ref] = item
	}
	for _, item := range now {
		was, ok := planned[item.Ref]
		delete(planned, item.Ref)
		why := ""
		switch {
		case !ok:
			why = "it appeared at the source after the plan was made"
		case was.UID != item.UID:
			why = "it was deleted at the source, and another object of its name was made"
		case was.Hash != item.Hash, isSecret(item.Ref) && was.ResourceVersion != item.ResourceVersion:
			why = "it changed at the source after the plan was made"
		}
		if why != "" && item.Keep == "" {
			found = append(found, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	for _, item := range plan {
		if _, gone := planned[item.Ref]; gone && item.Keep == "" {
			found = append(found, mover.Wait{Ref: item.Ref, Why: "it went away at the source after the plan was made"})
		}
	}
	return found
}

func isSecret(ref object.Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }

// rootsOf are the recorded roots among the plan, by reference.
func rootsOf(s *mover.State) map[object.Ref]pause.Root {
	roots := make(map[object.Ref]pause.Root, len(s.Roots))
	for _, r := range s.Roots {
		roots[r.Ref] = r
	}
	return roots
}
