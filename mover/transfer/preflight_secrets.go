package transfer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// checkWithheld makes sure that the target has the objects that are not shared: its providers cannot act without Secrets, nor clusters exist
// without their class.
func (t *Transfer) checkWithheld(ctx context.Context, namespace string, members mover.Members, f *findings) error {
	for _, l := range members.Left {
		if t.target == nil || !ofOthers(l.Ref, namespace) {
			continue
		}
		switch shown, err := t.shows(ctx, l.Ref); {
		case err != nil:
			return err
		case !shown:
			f.fail("target: "+l.Ref.String(), "it does not move, and the target does not show one: "+l.Why, "make it there; or "+share)
		default:
			f.warn(l.Ref.String(), "it is not moved, and the one of the target is used: "+l.Why, share+" if it is to move")
		}
	}
	return nil
}

// checkMissing makes sure that the target has what members name and what does not come with them.
func (t *Transfer) checkMissing(ctx context.Context, members mover.Members, f *findings) error {
	for _, l := range members.Missing {
		if t.target == nil {
			continue
		}
		switch shown, err := t.shows(ctx, l.Ref); {
		case err != nil:
			return err
		case !shown:
			f.fail("target: "+l.Ref.String(), "the target does not show one: "+l.Why, "make it there; or correct the field")
		default:
			f.warn(l.Ref.String(), "the one of the target is used: "+l.Why, "see that it is the right one")
		}
	}
	return nil
}

// shows says whether the target has an object, as far as the move may know.
func (t *Transfer) shows(ctx context.Context, ref object.Ref) (bool, error) {
	typ, served := t.onto[ref.GroupKind()]
	if !served {
		return false, nil
	}
	_, err := t.target.Get(ctx, typ, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}
