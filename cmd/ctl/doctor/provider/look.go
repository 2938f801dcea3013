package provider

import (
	"context"
	"errors"
	"fmt"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// clusterReader reads the objects of a cluster with the user's own permissions. It writes nothing.
type clusterReader struct {
	cluster         *kube.Cluster
	explain         func(error) error
	namespace, name string
}

func newClusterReader(c *connect.Cluster, name string) (*clusterReader, error) {
	k, err := kube.Connect("cluster", c.Config)
	return &clusterReader{cluster: k, explain: c.Explain, namespace: c.Namespace, name: name}, err
}

func (l *clusterReader) objects(ctx context.Context) ([]pause.Subject, error) {
	graph, err := transfer.NewGraph(ctx, l.cluster, mover.Selection{Namespace: l.namespace, Clusters: []string{l.name}})
	if err != nil {
		return nil, l.explain(err)
	}
	below, _, err := graph.Below(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects of cluster %s/%s: %w", l.namespace, l.name, l.explain(err))
	}
	return below, nil
}

// errAbsent reports that the cluster does not exist.
var errAbsent = errors.New("there is no such Cluster")

// checkNotPaused returns an error if a cluster cannot be checked now: it does not exist, or is already paused, so its objects would not react.
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
