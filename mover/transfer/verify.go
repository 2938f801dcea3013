package transfer

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/mover"
)

// verify makes sure, before the first deletion, that the target holds every planned object with the planned content,
// and that the source is what it was when the plan was made.
func (t *Transfer) verify(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	found, err := t.survey(ctx, s)
	if err != nil {
		return nil, err
	}
	_, unplanned, err := t.dependants(ctx, s)
	if err != nil {
		return nil, err
	}
	out := mover.VerifyDone{Differences: slices.Concat(drift(s.Plan, found.items), found.awake, unplanned)}
	err = each(ctx, t.workers(), s.Plan, func(ctx context.Context, item mover.Item) (mover.Wait, error) {
		why, err := t.differs(ctx, s, item)
		return mover.Wait{Ref: item.Ref, Why: why}, err
	}, func(batch []mover.Wait) error {
		for _, w := range batch {
			if w.Why != "" {
				out.Differences = append(out.Differences, w)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// differs compares one object on both sides; "" says that the target holds it as planned.
func (t *Transfer) differs(ctx context.Context, s *mover.State, item mover.Item) (string, error) {
	from, err := t.sourceType(item.Ref, item.Version)
	if err != nil {
		return "", err
	}
	onto, err := t.targetType(item.Ref, item.Version)
	if err != nil {
		return "", err
	}
	have, err := t.target.Get(ctx, onto, item.Ref.Namespace, item.Ref.Name)
	if apierrors.IsNotFound(err) {
		return "it is not on the target", nil
	}
	if err != nil {
		return "", err
	}
	if have.GetUID() != s.Created[item.Ref] {
		return "it was replaced on the target", nil
	}
	if have.GetDeletionTimestamp() != nil {
		return "it is being deleted on the target", nil
	}
	if released(have) {
		return "it was released on the target to be deleted: the move had been rolling back", nil
	}
	if s.Adopted[item.Ref] {
		return "", nil
	}
	source, err := t.Source.Get(ctx, from, item.Ref.Namespace, item.Ref.Name)
	if apierrors.IsNotFound(err) {
		return "it went away at the source", nil
	}
	if err != nil {
		return "", err
	}
	want, err := mover.Rewrite(source, item, t.copyMarks(item, foundOf(s, item.Ref)), s.Created)
	if err != nil {
		return "", err
	}
	if field, same := mover.Contains(want, have); !same {
		return "field " + field + " on the target is not what the source has", nil
	}
	return "", nil
}
