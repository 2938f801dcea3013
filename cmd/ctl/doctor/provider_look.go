package doctor

import (
	"context"
	"errors"
	"fmt"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// objects reads the cluster's objects with the user's own permissions.
func (c *providerCheck) objects(ctx context.Context) ([]pause.Subject, error) {
	graph, err := transfer.NewGraph(ctx, c.kube, mover.Selection{Namespace: c.key.Namespace, Clusters: []string{c.name}})
	if err != nil {
		return nil, c.cluster.Explain(err)
	}
	below, _, err := graph.Below(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects of cluster %s/%s: %w", c.key.Namespace, c.name, c.cluster.Explain(err))
	}
	return below, nil
}

var errAbsent = errors.New("there is no such Cluster")

// checkNotPaused returns an error if the cluster does not exist, or if it is paused: its objects
// would then not react to a pause.
func checkNotPaused(below []pause.Subject, namespace, name string) error {
	for _, o := range below {
		if !pause.IsCluster(o.Ref) || o.Ref.Name != name {
			continue
		}
		marks := hold.SharedHolders(o.Observed)
		switch {
		case o.MoveID != "":
			return fmt.Errorf("cluster %s/%s is part of move %s: check it when the move has ended", namespace, name, o.MoveID)
		case len(marks) > 0:
			return fmt.Errorf("cluster %s/%s is paused by %s: check it when that pause has ended", namespace, name, marks[0].Describe())
		case o.PausedByUser || o.Observed.Cluster.Paused:
			return fmt.Errorf("cluster %s/%s is already paused, so the check cannot observe its objects: set spec.paused to false and remove annotation %s from it, then check again",
				namespace, name, object.PausedAnnotation)
		}
		return nil
	}
	return fmt.Errorf("cluster %s/%s: %w: the check needs a cluster with objects of your kinds; name its namespace with -n", namespace, name, errAbsent)
}
