package moves

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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

// Watch follows one Move. It gives up when the API server has not answered for two minutes.
func (c *Cluster) Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.Move) bool) error {
	f := &reach.Follower[*v1alpha1.Move]{
		Cluster: c.Cluster, What: "move " + key.String(), List: &v1alpha1.MoveList{}, Get: c.Get, Notice: c.Notice,
		Gone:   func(where string) error { return notFound(key, where) },
		IsGone: func(err error) bool { return errors.Is(err, ErrNotFound) },
	}
	return f.Follow(ctx, key, fn)
}
