package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// ErrPreconditionFailed means that another client changed an object after the decision. Nothing was
// written. The caller must observe again instead of retrying.
var ErrPreconditionFailed = errors.New("the state has changed since the decision")

func preconditionFailed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPreconditionFailed, fmt.Sprintf(format, args...))
}

const performTimeout = time.Minute

// Executor performs actions on the management cluster.
type Executor struct {
	// Client must not cache, because each action reads the current object before it writes.
	Client client.Client
	// Etcd changes the etcd of workload clusters. If it is nil, actions on etcd fail.
	Etcd Etcd
}

// Perform performs one action for the owner in the facts. It uses only names and UIDs from the
// facts, and reads everything else again. If it returns ErrPreconditionFailed, nothing was written.
func (e *Executor) Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.Timeout, performTimeout))
	defer cancel()
	if err := performers[a.Type](&execution{Executor: e, Action: a, facts: f}, ctx); err != nil {
		return fmt.Errorf("%s (machine %s/%s): %w", a.Type, f.Owner.Namespace, a.Machine.Name, err)
	}
	return nil
}

type execution struct {
	*Executor
	remediator.Action
	facts *remediator.Facts
}

type performer func(*execution, context.Context) error

var performers = map[remediator.ActionType]performer{
	remediator.SetUnhealthy:     annotating(v1alpha1.UnhealthyAnnotation, true),
	remediator.SetNeeded:        annotating(object.NeededAnnotation, false),
	remediator.SetDelete:        (*execution).setDelete,
	remediator.SetCertificates:  (*execution).setCertificates,
	remediator.SetClonedFrom:    (*execution).setClonedFrom,
	remediator.SetRelaxed:       (*execution).setRelaxed,
	remediator.Touch:            (*execution).touch,
	remediator.Scale:            (*execution).scale,
	remediator.HandOver:         (*execution).handOver,
	remediator.Report:           (*execution).report,
	remediator.Withdraw:         (*execution).withdraw,
	remediator.ClearConditions:  (*execution).setHealthy,
	remediator.MoveLeadership:   onEtcd((*execution).moveLeadership),
	remediator.SkipDrain:        skipping(clusterv1.ExcludeNodeDrainingAnnotation),
	remediator.SkipDetach:       skipping(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation),
	remediator.CreateStepObject: (*execution).createStepObject,
	remediator.DeleteStepObject: (*execution).deleteStepObject,
	remediator.CreateRequest:    (*execution).createRequest,
	remediator.DeleteRequest:    (*execution).deleteRequest,
	remediator.Defragment:       onEtcd((*execution).defragment),
	remediator.Disarm:           onEtcd((*execution).disarm),
}

const (
	callTimeout = 10 * time.Second // of one attempt
	// firstConflict and lastConflict are the first and the longest delay after a conflict before
	// the object is read again.
	firstConflict, lastConflict = 25 * time.Millisecond, 500 * time.Millisecond

	maxConflict = 10 // enough for a controller that writes occasionally, too few for one that never stops
)

// call makes one API call, and retries it after transient errors, with a timeout for each attempt.
// It returns all other errors at once, for example 403, 404, 409 and 422.
func call(ctx context.Context, what string, do func(context.Context) error) error {
	if err := kube.Retry(ctx, callTimeout, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (e *Executor) get(ctx context.Context, key types.NamespacedName, into client.Object) error {
	return call(ctx, "reading "+key.String(), func(ctx context.Context) error { return e.Client.Get(ctx, key, into) })
}

type patcher func(context.Context, client.Object, client.Patch) error

func (e *Executor) patch(ctx context.Context, object client.Object, patch client.Patch) error {
	return e.Client.Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
}

func (e *Executor) patchStatus(ctx context.Context, object client.Object, patch client.Patch) error {
	return e.Client.Status().Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
}

// change reads an object, calls amend to change it, and sends the changes as a patch. The patch
// fails with a conflict if the object was changed after it was read. change then reads the object
// and calls amend again, so a lost response causes no second write. It writes nothing if amend
// returns an error or changes nothing. kind is an empty object of the kind and version to read.
func change[T client.Object](ctx context.Context, e *Executor, key types.NamespacedName, kind T, send patcher, amend func(T) error) error {
	return retryOnConflict(ctx, func() error {
		object := deepCopy(kind) // decoding into a used object would keep removed fields
		if err := e.get(ctx, key, object); err != nil {
			return err
		}
		original := deepCopy(object)
		if err := amend(object); err != nil {
			return err
		}
		changes, err := client.MergeFrom(original).Data(object)
		if err != nil {
			return fmt.Errorf("comparing %s: %w", key, err)
		}
		if string(changes) == "{}" {
			return nil
		}
		patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
		return call(ctx, "writing "+key.String(), func(ctx context.Context) error { return send(ctx, object, patch) })
	})
}

func (e *Executor) create(ctx context.Context, object client.Object) error {
	return call(ctx, "creating "+client.ObjectKeyFromObject(object).String(), func(ctx context.Context) error {
		return e.Client.Create(ctx, object, client.FieldOwner(kube.FieldManager))
	})
}

func deepCopy[T client.Object](object T) T {
	return object.DeepCopyObject().(T) //nolint:errcheck,forcetypeassert // a copy has the type of the original
}

// retryOnConflict calls once again after each conflict, with a growing delay. retry.RetryOnConflict
// of client-go is not used because it returns nil if the context ends.
func retryOnConflict(ctx context.Context, once func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstConflict), backoff.WithMaxInterval(lastConflict))
	return backoff.Retry(func() error {
		err := once()
		if err != nil && !apierrors.IsConflict(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(b, maxConflict), ctx))
}

func (d *execution) kind() (ownerkind.Kind, error) {
	kind, known := ownerkind.Named(d.facts.Owner.Kind)
	if !known {
		return kind, fmt.Errorf("a %s owns the machine, and scute does not know how to ask one for a replacement: replace the machine by hand", d.facts.Owner.Kind)
	}
	return kind, nil
}

func (d *execution) ownerKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.facts.Owner.Namespace, Name: d.facts.Owner.Name}
}

// owner reads the owner. It returns nil without an error if the owner is gone or a later object has
// its name.
func (d *execution) owner(ctx context.Context) (ownerkind.Owner, error) {
	kind, err := d.kind()
	if err != nil {
		return nil, err
	}
	o := kind.New()
	err = d.get(ctx, d.ownerKey(), o)
	if apierrors.IsNotFound(err) || err == nil && o.GetUID() != d.facts.Owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner, _ := ownerkind.As(o)
	return owner, nil
}

func (d *execution) updateOwner(ctx context.Context, asking bool, amend func(ownerkind.Owner) error) error {
	kind, err := d.kind()
	if err != nil {
		return err
	}
	err = change(ctx, d.Executor, d.ownerKey(), kind.New(), d.patch, func(read client.Object) error {
		if read.GetUID() != d.facts.Owner.UID {
			return errGone
		}
		o, _ := ownerkind.As(read)
		return amend(o)
	})
	return d.whenGone(err, asking, d.ownerGone())
}

func (d *execution) ownerGone() string {
	return fmt.Sprintf("the %s %s is gone, or another one has its name", d.facts.Owner.Kind, d.facts.Owner.Name)
}

// touch sets or removes an annotation of the owner whose only purpose is to trigger the owner's
// controller.
func (d *execution) touch(ctx context.Context) error {
	return d.updateOwner(ctx, d.Value != "", func(o ownerkind.Owner) error {
		annotate(o, object.TouchAnnotation, d.Value)
		return nil
	})
}

// setRelaxed sets or removes the control plane's annotation remediation-in-progress. It does not
// change an annotation that names another machine.
func (d *execution) setRelaxed(ctx context.Context) error {
	return d.updateOwner(ctx, d.Value != "", func(o ownerkind.Owner) error {
		if !o.RelaxesPreflight() {
			return fmt.Errorf("a %s has no preflight checks to relax", d.facts.Owner.Kind)
		}
		have, there := o.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation]
		switch ours := there && remediator.RelaxedFor(have) == d.Machine.Name; {
		case ours && d.Value == "":
			annotate(o, controlplanev1.RemediationInProgressAnnotation, "")
			return nil
		case ours, d.Value == "":
			return nil
		case there:
			return preconditionFailed("the control plane already has the annotation %s for another machine: %s", controlplanev1.RemediationInProgressAnnotation, have)
		}
		if err := d.checkAllowed(ctx, o); err != nil {
			return err
		}
		annotate(o, controlplanev1.RemediationInProgressAnnotation, d.Value)
		return nil
	})
}

// annotate sets an annotation, or removes it if the value is "".
func annotate(o metav1.Object, key, value string) {
	annotations := o.GetAnnotations()
	if value == "" {
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[key] = value
	}
	o.SetAnnotations(annotations)
}
