package runs

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

// Cluster reads the Workflow resource.
type Cluster struct {
	*reach.Cluster
	// Notice is told when a watch breaks and is taken up again; nil tells nobody.
	Notice func(error)
}

// Resource reads one Workflow.
func (c *Cluster) Resource(ctx context.Context, key types.NamespacedName) (*v1alpha1.Workflow, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	var w v1alpha1.Workflow
	err := c.Client.Get(ctx, key, &w)
	if apierrors.IsNotFound(err) {
		return nil, notFound(key, "on "+c.Config.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", key, c.Explain(err))
	}
	return &w, nil
}

// Get reads one run.
func (c *Cluster) Get(ctx context.Context, key types.NamespacedName) (*Run, error) {
	w, err := c.Resource(ctx, key)
	if err != nil {
		return nil, err
	}
	return OfResource(w), nil
}

// List reads the runs of a namespace, or all.
func (c *Cluster) List(ctx context.Context, namespace string) ([]*Run, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	var list v1alpha1.WorkflowList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing runs: %w", c.Explain(err))
	}
	out := make([]*Run, len(list.Items))
	for i := range list.Items {
		out[i] = OfResource(&list.Items[i])
	}
	return out, nil
}

// Watch follows one run. It gives up when the API server has not answered for two minutes.
func (c *Cluster) Watch(ctx context.Context, key types.NamespacedName, fn func(*Run) bool) error {
	f := &reach.Follower[*v1alpha1.Workflow]{
		Cluster: c.Cluster, What: "run " + key.String(), List: &v1alpha1.WorkflowList{}, Get: c.Resource, Notice: c.Notice,
		Gone:   func(where string) error { return notFound(key, where) },
		IsGone: func(err error) bool { return errors.Is(err, ErrNotFound) },
	}
	return f.Follow(ctx, key, func(w *v1alpha1.Workflow) bool { return fn(OfResource(w)) })
}

// OfResource is the run that a Workflow shows.
func OfResource(w *v1alpha1.Workflow) *Run {
	return &Run{
		Namespace: w.Namespace, Name: w.Name, ID: w.Status.RunID, Status: w.Status, CreatedAt: w.CreationTimestamp.Time,
	}
}
