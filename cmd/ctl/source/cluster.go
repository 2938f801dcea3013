package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
)

// Cluster reads objects of type T from their resources O.
type Cluster[O client.Object, T any] struct {
	*connect.Cluster
	// Noun is the name of the kind in errors, for example "move".
	Noun string
	// New returns an empty resource, and NewList an empty list.
	New     func() O
	NewList func() client.ObjectList
	// Convert converts a resource.
	Convert func(O) T
	// Notice is called when a watch breaks and is restarted, unless it is nil.
	Notice func(error)
}

func (c *Cluster[O, T]) resource(ctx context.Context, key types.NamespacedName) (O, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	o, none := c.New(), *new(O)
	err := c.Client.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return none, &missing{noun: c.Noun, key: key, where: "on " + c.Config.Host}
	}
	if err != nil {
		return none, fmt.Errorf("reading %s %s: %w", c.Noun, key, c.Explain(err))
	}
	return o, nil
}

// Get reads one resource.
func (c *Cluster[O, T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	o, err := c.resource(ctx, key)
	if err != nil {
		return *new(T), err
	}
	return c.Convert(o), nil
}

// List reads the resources of a namespace, or all.
func (c *Cluster[O, T]) List(ctx context.Context, namespace string) ([]T, error) {
	list, err := c.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return c.items(list)
}

func (c *Cluster[O, T]) items(list client.ObjectList) (out []T, err error) {
	err = meta.EachListItem(list, func(o runtime.Object) error {
		one, ok := o.(O)
		if !ok {
			return fmt.Errorf("listing %ss: %T is not one", c.Noun, o)
		}
		out = append(out, c.Convert(one))
		return nil
	})
	return out, err
}

func (c *Cluster[O, T]) list(ctx context.Context, namespace string) (client.ObjectList, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	list := c.NewList()
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", c.Noun, c.Explain(err))
	}
	return list, nil
}

// Watch follows one resource. It returns an error if the API server has not answered for two minutes.
func (c *Cluster[O, T]) Watch(ctx context.Context, key types.NamespacedName, fn func(T) bool) error {
	what := connect.FollowOptions{What: c.Noun + " " + key.String(), List: c.NewList(), Namespace: key.Namespace, Name: key.Name, Notice: c.Notice}
	var was types.UID // UID of the watched resource
	return c.Follow(ctx, what, func(changed client.Object) (string, bool, error) {
		o, ok := changed.(O)
		var err error
		if !ok {
			o, err = c.resource(ctx, key)
		}
		switch {
		case was != "" && (errors.Is(err, ErrNotFound) || err == nil && o.GetUID() != was):
			return "", false, backoff.Permanent(&missing{noun: c.Noun, key: key, where: "any longer: it was deleted", gone: true})
		case errors.Is(err, ErrNotFound):
			return "", false, backoff.Permanent(err)
		case err != nil:
			return "", false, err
		}
		was = o.GetUID()
		return o.GetResourceVersion(), fn(c.Convert(o)), nil
	})
}

// WatchAll follows the resources of a namespace, or all.
func (c *Cluster[O, T]) WatchAll(ctx context.Context, namespace string, fn func([]T) bool) error {
	return c.Follow(ctx, connect.FollowOptions{What: c.Noun + "s", List: c.NewList(), Namespace: namespace, Notice: c.Notice}, func(client.Object) (string, bool, error) {
		list, err := c.list(ctx, namespace)
		if err != nil {
			return "", false, err
		}
		all, err := c.items(list)
		if err != nil {
			return "", false, err
		}
		return list.GetResourceVersion(), fn(all), nil
	})
}
