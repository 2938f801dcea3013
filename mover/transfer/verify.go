package transfer

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/mover"
)

// verify checks, before the first deletion at the source, that the target's controllers have
// acknowledged that the copies are paused, that the copies match the plan, and that the source has
// not changed since the plan was made.
func (t *Transfer) verify(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	pending, err := t.pollUnacknowledged(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case len(pending) > 0:
		return mover.CopiesUnacknowledged{Pending: pending}, nil
	}
	var found survey
	var unplanned, late, different []mover.ObjectReason
	// The checks are independent: at least one detects a change that was made before both have
	// ended.
	looks, lookCtx := errgroup.WithContext(ctx)
	looks.Go(func() error {
		_, w, err := t.members(lookCtx, s.Spec, hashed)
		if err == nil {
			found, err = t.evaluate(lookCtx, s, w)
		}
		if err == nil {
			unplanned, err = t.unplannedDependents(lookCtx, s, w)
		}
		if err == nil {
			late, err = t.newlyLost(lookCtx, s, w)
		}
		return err
	})
	looks.Go(func() error {
		for _, part := range byKind(s.Plan) {
			differences, err := t.compare(lookCtx, s, part)
			if err != nil {
				return err
			}
			different = append(different, differences...)
		}
		return nil
	})
	if err := looks.Wait(); err != nil {
		return nil, err
	}
	out := mover.VerifyDone{Differences: slices.Concat(drift(s.Plan, found.items), found.active, found.deleting, unplanned, late, different)}
	t.verified = len(out.Differences) == 0
	return out, nil
}

// byKind splits a plan into parts of whole kinds with at most maxInMemory objects each, unless one
// kind has more. compare holds the copies of one part in memory.
func byKind(plan []mover.Item) [][]mover.Item {
	kinds := make(map[string][]mover.Item)
	for _, item := range plan {
		kinds[item.Ref.GroupKind()] = append(kinds[item.Ref.GroupKind()], item)
	}
	var parts [][]mover.Item
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if last := len(parts) - 1; last >= 0 && len(parts[last])+len(kinds[kind]) <= maxInMemory {
			parts[last] = append(parts[last], kinds[kind]...)
			continue
		}
		parts = append(parts, kinds[kind])
	}
	return parts
}

func (t *Transfer) compare(ctx context.Context, s *mover.State, items []mover.Item) (differences []mover.ObjectReason, err error) {
	onto, err := t.wantedOf(t.target, items)
	if err != nil {
		return nil, err
	}
	copies, whys := make([]*unstructured.Unstructured, len(items)), make([]string, len(items))
	roots := rootsOf(s)
	read := make(chan struct{}) // closed when all copies are read
	sides, ctx := errgroup.WithContext(ctx)
	sides.Go(func() error {
		err := readEach(ctx, t, t.target, onto, func(_ context.Context, i int, u *unstructured.Unstructured) (struct{}, error) {
			if u != nil {
				delete(u.Object, "status") // not compared, like the managed fields
				u.SetManagedFields(nil)
			}
			copies[i] = u
			return struct{}{}, nil
		}, discard)
		if err == nil {
			close(read)
		}
		return err
	})
	sides.Go(func() error {
		return eachOriginal(ctx, t, items, func(ctx context.Context, i int, source *unstructured.Unstructured) (none struct{}, err error) {
			select {
			case <-read:
			case <-ctx.Done():
				return none, ctx.Err()
			}
			whys[i], err = t.difference(s, items[i], roots[items[i].Ref].Found, source, copies[i])
			return none, err
		}, discard)
	})
	err = sides.Wait()
	for i, item := range items {
		if whys[i] != "" {
			differences = append(differences, mover.ObjectReason{Ref: item.Ref, Reason: whys[i]})
		}
	}
	return differences, err
}

// difference returns how the object of the target, have, differs from the planned copy of source,
// or "". Each of the two is nil if it does not exist. found means that the move found the original
// paused.
func (t *Transfer) difference(s *mover.State, item mover.Item, found bool, source, have *unstructured.Unstructured) (string, error) {
	switch {
	case have == nil:
		return "it is not on the target", nil
	case have.GetUID() != s.Created[item.Ref]:
		return "it was replaced on the target", nil
	case have.GetDeletionTimestamp() != nil:
		return "it is being deleted on the target", nil
	case isReleased(have):
		return "the rollback of this move has removed its finalizers on the target to delete it", nil
	case s.Adopted[item.Ref]:
		return "", nil
	case source == nil:
		return "it was deleted at the source", nil
	}
	want, err := mover.Rewrite(source, item, t.copyAnnotations(item, found), s.Created)
	if err != nil {
		return "", err
	}
	if field, same := mover.Contains(want, have); !same {
		return "field " + field + " on the target differs from the source", nil
	}
	return "", nil
}
