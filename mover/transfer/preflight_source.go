package transfer

import (
	"context"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// checkRemoval asks the source: may we, and would it let go of each object.
func (t *Transfer) checkRemoval(ctx context.Context, members mover.Members, f *findings) error {
	tr, allowed, err := t.newTrials(ctx, t.Source, t.types, members, sourceVerbs(), f)
	if err != nil {
		return err
	}
	return t.tryRemoval(ctx, tr, members, allowed, f)
}

// tryRemoval releases and deletes every object at the source in a dry run that the source may not let go: a webhook or a policy
// that denies it would otherwise stop the move when the source is half empty. What has no finalizers is released only if its
// deletion is denied without that, so the preflight tries no more than the move will do. A release is an update of the whole
// object, so the source's validation may refuse it too.
func (t *Transfer) tryRemoval(ctx context.Context, tr *trials, members mover.Members, allowed permissions, f *findings) error {
	var tried, unsure []removal
	var validated []kube.Type
	for _, m := range members.Objects {
		if m.Keep != "" || m.Deleting || !allowed.may("patch", m.Ref) || !allowed.may("delete", m.Ref) {
			continue
		}
		typ, err := t.sourceType(m.Ref, m.Version)
		if err != nil {
			return err
		}
		r := removal{Member: m, typ: typ, released: m.Finalizers > 0 || pause.IsRoot(m.Ref)}
		r.release = r.released && tr.needs(admissionv1.Update, typ, m)
		r.remove = tr.needs(admissionv1.Delete, typ, m)
		if r.release || r.remove {
			tried = append(tried, r)
		}
		if r.released && !r.release && !typ.Plain() {
			unsure, validated = append(unsure, r), append(validated, typ)
		}
	}
	if err := tr.learn(ctx, t.Source, t.workers(), validated); err != nil {
		return err
	}
	err := parallel(ctx, t.workers(), tried, func(ctx context.Context, r removal) error { return t.tryOne(ctx, r, f) })
	if err != nil {
		return err
	}
	return t.tryUnsure(ctx, tr, unsure, f)
}

// removal is what the preflight tries of taking one object away.
type removal struct {
	mover.Member

	typ kube.Type
	// released: the move will release it before it deletes it.
	released        bool
	release, remove bool
}

func (t *Transfer) tryOne(ctx context.Context, r removal, f *findings) error {
	if r.release {
		if refused, err := t.tryRelease(ctx, r.typ, r.Member, f); refused || err != nil {
			return err
		}
	}
	if !r.remove {
		return nil
	}
	denied, err := t.tryDelete(ctx, r.typ, r.Member, f)
	if denied && !r.released && err == nil {
		_, err = t.tryRelease(ctx, r.typ, r.Member, f)
	}
	return err
}

// tryUnsure tries to release the objects that the validation of the source does not accept as they are.
func (t *Transfer) tryUnsure(ctx context.Context, tr *trials, unsure []removal, f *findings) error {
	want := make([]wanted, len(unsure))
	for i, r := range unsure {
		want[i] = wanted{r.typ, r.Ref}
	}
	return whole(ctx, t, t.Source, want, func(ctx context.Context, i int, u *unstructured.Unstructured) (struct{}, error) {
		if u == nil || tr.releasable(ctx, want[i].typ, u) {
			return struct{}{}, nil
		}
		_, err := t.tryRelease(ctx, want[i].typ, unsure[i].Member, f)
		return struct{}{}, err
	}, func([]struct{}) error { return nil })
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
