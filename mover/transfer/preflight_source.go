package transfer

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// tryRemoval releases and deletes every object at the source in a dry run: a webhook or a policy that denies it would
// otherwise stop the move when the source is half empty. What has no finalizers is released only if its deletion is denied
// without that, so the preflight tries no more than the move will do.
func (t *Transfer) tryRemoval(ctx context.Context, members mover.Members, denied map[access]bool, f *findings) error {
	return parallel(ctx, t.workers(), members.Objects, func(ctx context.Context, m mover.Member) error {
		may := func(verb string) bool { return !denied[access{m.Ref.GroupKind(), m.Ref.Namespace, verb}] }
		if m.Keep != "" || m.Deleting || !may("patch") || !may("delete") {
			return nil
		}
		typ, err := t.sourceType(m.Ref, m.Version)
		if err != nil {
			return err
		}
		released := m.Finalizers > 0 || pause.IsRoot(m.Ref)
		if released {
			if refused, err := t.tryRelease(ctx, typ, m, f); refused || err != nil {
				return err
			}
		}
		denied, err := t.tryDelete(ctx, typ, m, f)
		if denied && !released && err == nil {
			_, err = t.tryRelease(ctx, typ, m, f)
		}
		return err
	})
}

// tryRelease: the patch carries the annotation that webhooks go by, so its refusal is an error.
func (t *Transfer) tryRelease(ctx context.Context, typ kube.Type, m mover.Member, f *findings) (refused bool, err error) {
	err = patchRelease(ctx, t.Source, typ, m.Ref, m.UID, metav1.DryRunAll)
	switch why := denial(err); {
	case err == nil, gone(err), apierrors.IsConflict(err):
		return false, nil
	case why == "":
		return false, err
	case noDryRun(why):
		f.warnOnce("source", "whether objects can be taken away could not be tried: "+why, "declare sideEffects None for that webhook if it has none")
		return false, nil
	default:
		f.fail(m.Ref.String(), "the source would refuse to have its finalizers taken off: "+why, "make the source accept it (admission, validation)")
		return true, nil
	}
}

// tryDelete: a webhook that lets an object with the annotation for a move pass does not see it here, because nothing is
// written. So a denial is a warning. That of a ClusterClass says only that its Clusters are there.
func (t *Transfer) tryDelete(ctx context.Context, typ kube.Type, m mover.Member, f *findings) (denied bool, err error) {
	if isClass(m.Ref) {
		return false, nil
	}
	err = t.Source.TryDelete(ctx, typ, m.Ref.Namespace, m.Ref.Name)
	switch why := denial(err); {
	case err == nil, gone(err), apierrors.IsConflict(err):
		return false, nil
	case why == "":
		return false, err
	case noDryRun(why):
		f.warnOnce("source", "whether objects can be taken away could not be tried: "+why, "declare sideEffects None for that webhook if it has none")
	default:
		f.warn(m.Ref.String(), "the source denies its deletion in a dry run: "+why,
			"have what denies it let objects with the annotation "+object.DeleteForMoveAnnotation+" pass; else the move stops there when the source is half empty")
	}
	return true, nil
}

// denial is what a server says of a request that it refused for what it asks; "" for every other error.
func denial(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return status.Status().Message
	}
	return ""
}

// noDryRun: a webhook with side effects is not called in a dry run, and the request is refused.
func noDryRun(why string) bool { return strings.Contains(why, "does not support dry run") }
