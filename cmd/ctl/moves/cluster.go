package moves

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

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
)

// Cluster reads the resource.
type Cluster struct {
	*reach.Cluster
	// Notice is told when a watch breaks and is taken up again; nil tells nobody.
	Notice func(error)
}

// Get reads one Move.
func (c *Cluster) Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Move, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	var m v1alpha1.Move
	err := c.Client.Get(ctx, key, &m)
	if apierrors.IsNotFound(err) {
		return nil, notFound(key, "on "+c.Config.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("reading move %s: %w", key, c.Explain(err))
	}
	return &m, nil
}

// List reads the Moves of a namespace, or all.
func (c *Cluster) List(ctx context.Context, namespace string) ([]v1alpha1.Move, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	var list v1alpha1.MoveList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing moves: %w", c.Explain(err))
	}
	return list.Items, nil
}

// errEnough ends a watch that has seen what it waited for.
var errEnough = errors.New("enough")

// Watch follows one Move. It gives up when the API server has not answered for two minutes.
func (c *Cluster) Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.Move) bool) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(2*time.Minute))
	err := backoff.RetryNotify(func() error {
		err := c.follow(ctx, key, func(m *v1alpha1.Move) bool {
			b.Reset()
			return fn(m)
		})
		if errors.Is(err, ErrNotFound) || errors.Is(err, errEnough) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if c.Notice != nil && !errors.Is(err, errBroken) {
			c.Notice(err)
		}
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errBroken is the usual end of a watch: the server closes each after some minutes.
var errBroken = errors.New("the watch has ended")

// follow reads the Move and then what changes, until the server ends the watch.
func (c *Cluster) follow(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.Move) bool) error {
	m, err := c.Get(ctx, key)
	if err != nil {
		return err
	}
	if fn(m) {
		return errEnough
	}
	w, err := c.Client.Watch(ctx, &v1alpha1.MoveList{}, client.InNamespace(key.Namespace), &client.ListOptions{
		Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
		Raw: resume(m.ResourceVersion),
	})
	if err != nil {
		return fmt.Errorf("watching move %s: %w", key, c.Explain(err))
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
				if m, ok := ev.Object.(*v1alpha1.Move); ok && fn(m) {
					return errEnough
				}
			case watch.Deleted:
				return notFound(key, "any more: it was deleted")
			case watch.Error:
				return fmt.Errorf("watching move %s: %w", key, apierrors.FromObject(ev.Object))
			}
		}
	}
}

func resume(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}
