package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Machines returns the Machines of a cluster's control plane, or its workers, the oldest first.
func Machines(ctx context.Context, c client.Client, cluster client.ObjectKey, controlPlane bool) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	err := c.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the machines of %s: %w", cluster, err)
	}
	machines := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool {
		_, of := m.Labels[clusterv1.MachineControlPlaneLabel]
		return of != controlPlane
	})
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int {
		if d := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return machines, nil
}
