package reach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follower follows one object.
type Follower[T client.Object] struct {
	*Cluster
	// What it is called in errors: "run fleet/prod".
	What string
	// List of the kind.
	List client.ObjectList
	// Get reads the object.
	Get func(ctx context.Context, key types.NamespacedName) (T, error)
	// Gone is the error of an object that is not there; Get's errors of that kind end it.
	Gone func(where string) error
	// IsGone tells them.
	IsGone func(error) bool
	// Notice is told when a watch breaks and is taken up again; nil tells nobody.
	Notice func(error)
}

// errEnough ends a watch that has seen what it waited for.
var errEnough = errors.New("enough")

// errBroken is the usual end of a watch: the server closes each after some minutes.
var errBroken = errors.New("the watch has ended")

// Follow calls fn with the object as it is, and again whenever it has changed, until fn says that it has seen enough. It
// gives up when the API server has not answered for two minutes.
func (f *Follower[T]) Follow(ctx context.Context, key types.NamespacedName, fn func(T) (enough bool)) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(2*time.Minute))
	err := backoff.RetryNotify(func() error {
		err := f.follow(ctx, key, func(o T) bool {
			b.Reset()
			return fn(o)
		})
		if f.IsGone(err) || errors.Is(err, errEnough) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if f.Notice != nil && !errors.Is(err, errBroken) {
			f.Notice(err)
		}
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// follow reads the object and then what changes, until the server ends the watch.
func (f *Follower[T]) follow(ctx context.Context, key types.NamespacedName, fn func(T) bool) error {
	o, err := f.Get(ctx, key)
	if err != nil {
		return err
	}
	if fn(o) {
		return errEnough
	}
	list, ok := f.List.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("following %s: %T is no list", f.What, f.List)
	}
	w, err := f.Client.Watch(ctx, list, client.InNamespace(key.Namespace), &client.ListOptions{
		Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
		Raw: &metav1.ListOptions{ResourceVersion: o.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.What, f.Explain(err))
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-w.ResultChan():
			if !ok {
				return errBroken
			}
			switch ev.Type {
			case watch.Added, watch.Modified:
				if o, ok := ev.Object.(T); ok && fn(o) {
					return errEnough
				}
			case watch.Deleted:
				return f.Gone("any more: it was deleted")
			case watch.Error:
				return fmt.Errorf("watching %s: %w", f.What, apierrors.FromObject(ev.Object))
			}
		}
	}
}
