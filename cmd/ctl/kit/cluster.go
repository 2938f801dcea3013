package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
)

type clusterSource[T any] struct {
	*connect.Cluster
	noun   *Noun[T]
	notice func(error)
}

// InCluster returns a source that reads from the API server. If notice is not nil, it is called
// when a watch breaks and is restarted.
func (n *Noun[T]) InCluster(c *connect.Cluster, notice func(error)) Source[T] {
	return &clusterSource[T]{Cluster: c, noun: n, notice: notice}
}

func (c *clusterSource[T]) resource(ctx context.Context, key types.NamespacedName) (client.Object, error) {
	o := c.noun.New()
	err := c.Client.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, &missing{noun: c.noun.Name, key: key, where: "on " + c.Config.Host}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", c.noun.Name, key, c.Explain(err))
	}
	return o, nil
}

// Get reads one resource.
func (c *clusterSource[T]) Get(ctx context.Context, key types.NamespacedName) (t T, err error) {
	o, err := c.resource(ctx, key)
	if err != nil {
		return t, err
	}
	return c.noun.Convert(o), nil
}

// List reads the resources of a namespace, or of all.
func (c *clusterSource[T]) List(ctx context.Context, namespace string) ([]T, error) {
	all, _, err := c.list(ctx, namespace)
	return all, err
}

// list works like List, and also returns the resource version of the list.
func (c *clusterSource[T]) list(ctx context.Context, namespace string) (all []T, version string, err error) {
	list := c.noun.NewList()
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, "", fmt.Errorf("listing %s: %w", c.noun.Plural, c.Explain(err))
	}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		all = append(all, c.noun.Convert(o))
		return nil
	})
	return all, list.GetResourceVersion(), err
}

// Watch follows one resource. It fails if the API server has not answered for two minutes.
func (c *clusterSource[T]) Watch(ctx context.Context, key types.NamespacedName, fn func(T) bool) error {
	var was types.UID
	return c.follow(ctx, key, func(o client.Object) (string, error) {
		var err error
		if o == nil {
			o, err = c.resource(ctx, key)
		}
		switch {
		case was != "" && (errors.Is(err, ErrNotFound) || err == nil && o.GetUID() != was):
			return "", backoff.Permanent(&missing{noun: c.noun.Name, key: key, where: "any longer: it was deleted", gone: true})
		case errors.Is(err, ErrNotFound):
			return "", backoff.Permanent(err)
		case err != nil:
			return "", err
		}
		was = o.GetUID()
		return o.GetResourceVersion(), endIf(fn(c.noun.Convert(o)))
	})
}

// WatchAll follows the resources of a namespace, or of all.
func (c *clusterSource[T]) WatchAll(ctx context.Context, namespace string, fn func([]T) bool) error {
	return c.follow(ctx, types.NamespacedName{Namespace: namespace}, func(client.Object) (string, error) {
		all, version, err := c.list(ctx, namespace)
		if err == nil {
			err = endIf(fn(all))
		}
		return version, err
	})
}

// changeFunc processes a change, and returns the resource version that it has processed. o is nil
// at first and after a deletion: changeFunc then reads the objects itself. errEnough and
// backoff.Permanent errors end the watch. After any other error, changeFunc is called again.
type changeFunc func(o client.Object) (version string, err error)

// errBroken is how a watch normally ends: the server closes each watch after some minutes.
var errBroken = errors.New("the watch has ended")

// follow calls fn first, and again after each change of the object, or of all objects of a
// namespace if key has no name. It fails if the API server has not answered for two minutes.
func (c *clusterSource[T]) follow(ctx context.Context, key types.NamespacedName, fn changeFunc) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(2*time.Minute))
	err := backoff.RetryNotify(func() error {
		err := c.watchOnce(ctx, key, func(o client.Object) (string, error) {
			version, err := fn(o)
			if err == nil {
				b.Reset()
			}
			return version, err
		})
		if errors.Is(err, errEnough) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if c.notice != nil && !errors.Is(err, errBroken) {
			c.notice(err)
		}
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// watchOnce calls fn first and after each change, until fn fails or the server ends the watch.
func (c *clusterSource[T]) watchOnce(ctx context.Context, key types.NamespacedName, fn changeFunc) error {
	version, err := fn(nil)
	if err != nil {
		return err
	}
	what, options := c.noun.Plural, &client.ListOptions{Namespace: key.Namespace, Raw: &metav1.ListOptions{ResourceVersion: version}}
	if key.Name != "" {
		what, options.FieldSelector = c.noun.Name+" "+key.String(), fields.OneTermEqualSelector("metadata.name", key.Name)
	}
	w, err := c.Client.Watch(ctx, c.noun.NewList(), options)
	if err != nil {
		return fmt.Errorf("watching %s: %w", what, c.Explain(err))
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-w.ResultChan():
			switch {
			case !ok:
				return errBroken
			case ev.Type == watch.Error:
				return fmt.Errorf("watching %s: %w", what, apierrors.FromObject(ev.Object))
			case ev.Type == watch.Bookmark:
				continue
			}
			var o client.Object // nil if the object was deleted
			if ev.Type != watch.Deleted {
				o, _ = ev.Object.(client.Object)
			}
			if _, err := fn(o); err != nil {
				return err
			}
		}
	}
}
