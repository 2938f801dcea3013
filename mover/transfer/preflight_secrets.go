package transfer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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

// takeFiles is how a Secret with the content of files moves.
const takeFiles = "label it " + object.MoveLabel + " and " + clusterv1.ClusterNameLabel + " with the name of the Cluster"

// checkFiles makes sure that the target has the Secrets that stay and that it makes machines with: the first new machine would wait for
// them there.
func (t *Transfer) checkFiles(ctx context.Context, members mover.Members, f *findings) error {
	for _, l := range members.Files {
		if t.target == nil {
			continue
		}
		switch shown, err := t.shows(ctx, l.Ref); {
		case err != nil:
			return err
		case !shown:
			f.fail("target: "+l.Ref.String(), "the target does not show one: "+l.Why, "make it there; or "+takeFiles+" if it is to move")
		default:
			f.warn(l.Ref.String(), "the one of the target is used: "+l.Why, takeFiles+" if it is to move")
		}
	}
	return nil
}

// shows says whether the target has an object, as far as the move may know.
func (t *Transfer) shows(ctx context.Context, ref object.Ref) (bool, error) {
	typ, served := t.onto[ref.GroupKind()]
	if !served {
		typ = t.types[ref.GroupKind()]
	}
	_, err := t.target.Get(ctx, typ, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}
