package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/redact"
	"scute.dev/kube"
	"scute.dev/kube/settled"
)

const (
	lookFirst = 500 * time.Millisecond
	lookMax   = 2 * time.Second
)

// poll looks until there is nothing to wait for. look says what it waits for, "" for nothing more; its error ends the
// wait, unless it may pass by itself: an API server that is being upgraded comes back.
func poll(ctx context.Context, c *Call, look func(context.Context) (waitsFor string, err error)) error {
	pause, last := lookFirst, ""
	for {
		waitsFor, err := look(ctx)
		switch {
		case err == nil && waitsFor == "":
			return nil
		case err != nil && (IsFinal(err) || !passes(err)):
			return err
		case err != nil && ctx.Err() == nil:
			waitsFor = redact.Message(err.Error())
		case err != nil: // the look was cut short: what was seen before tells more
			waitsFor = last
		}
		if waitsFor != last && waitsFor != "" && c.Progress != nil {
			c.Progress(waitsFor)
		}
		last = waitsFor
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			if last == "" {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %s", ctx.Err(), last)
		case <-timer.C:
		}
		pause = min(pause*3/2, lookMax)
	}
}

// passes says whether an error of a look may pass: kube.Passing, and the end of the look's context.
func passes(err error) bool {
	var failed *failedObjectError
	if errors.As(err, &failed) {
		return false
	}
	return kube.Passing(err) || apierrors.IsUnauthorized(err) || errors.Is(err, context.Canceled)
}

// settled says what keeps an object from being settled, "" for nothing. A kind of Cluster API that has machines must be rolled
// out; every other object must be ready.
func (cl *Cluster) settled(ctx context.Context, ref ObjectRef, u *unstructured.Unstructured) (missing string, err error) {
	kind := ref.gvk().GroupKind()
	if u == nil || !settled.Judges(kind) {
		return readiness(ref, u)
	}
	state, err := settled.Look(ctx, cl.Client, kind, client.ObjectKeyFromObject(u))
	switch {
	case errors.Is(err, settled.ErrVersion):
		return "", Final(fmt.Errorf("%s: %w", ref, err))
	case err != nil:
		return "", refusal(err)
	default:
		return redact.Message(bounded(state.Missing())), nil
	}
}

// readiness is what kstatus says: "" for ready, else what is missing. An error: it has failed.
func readiness(ref ObjectRef, u *unstructured.Unstructured) (missing string, err error) {
	if u == nil {
		return ref.String() + " is not there", nil
	}
	result, err := status.Compute(u)
	if err != nil {
		return "", &failedObjectError{fmt.Errorf("%s: its status is not readable: %w", ref, err)}
	}
	message := redact.Message(result.Message)
	switch result.Status {
	case status.CurrentStatus:
		return "", nil
	case status.FailedStatus:
		return "", &failedObjectError{fmt.Errorf("%s has failed: %s", ref, message)}
	case status.TerminatingStatus:
		return ref.String() + " is being deleted", nil
	default:
		return fmt.Sprintf("%s is not ready: %s", ref, message), nil
	}
}

// remove deletes the very object that is meant, and waits until it is gone. Another object of its name does not count.
func (cl *Cluster) remove(ctx context.Context, c *Call, ref ObjectRef, uid types.UID, propagation metav1.DeletionPropagation, wait bool) error {
	err := poll(ctx, c, func(ctx context.Context) (string, error) {
		u, err := cl.find(ctx, ref)
		if err != nil || u == nil || u.GetUID() != uid {
			return "", err
		}
		if u.GetDeletionTimestamp() == nil {
			if err := cl.delete(ctx, ref, uid, propagation); err != nil || !wait {
				return "", err
			}
			if u, err = cl.find(ctx, ref); err != nil || u == nil || u.GetUID() != uid {
				return "", err
			}
		}
		if f := u.GetFinalizers(); len(f) > 0 {
			return fmt.Sprintf("%s is being deleted and held by %s", ref, bounded(f)), nil
		}
		return ref.String() + " is being deleted", nil
	})
	if err != nil {
		return fmt.Errorf("deleting %s: %w", ref, refusalOf(ref, err))
	}
	return nil
}

// delete sends the deletion of the object of that UID. That it is gone, or another has its name, is no error.
func (cl *Cluster) delete(ctx context.Context, ref ObjectRef, uid types.UID, propagation metav1.DeletionPropagation) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.gvk())
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	err := cl.Kube.Do(ctx, "delete "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Delete(ctx, u, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
