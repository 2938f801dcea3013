package inventory

import (
	"context"
	"fmt"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// LeftOfRemediations returns what remediations have left behind on a cluster. It is empty if all its machines are
// healthy.
func LeftOfRemediations(ctx context.Context, c client.Client, namespace, cluster string) ([]string, error) {
	of := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}}
	var left []string
	machines := &clusterv1.MachineList{}
	if err := c.List(ctx, machines, of...); err != nil {
		return nil, err
	}
	for i := range machines.Items {
		left = append(left, leftOn(&machines.Items[i])...)
	}
	owners := &controlplanev1.KubeadmControlPlaneList{}
	if err := c.List(ctx, owners, of...); err != nil {
		return nil, err
	}
	for i := range owners.Items {
		if value := owners.Items[i].Annotations[controlplanev1.RemediationInProgressAnnotation]; value != "" {
			left = append(left, controlplanev1.RemediationInProgressAnnotation+": "+value)
		}
	}
	requests := &v1alpha1.SurgeRemediationList{}
	if err := c.List(ctx, requests, of...); err != nil {
		return nil, err
	}
	for i := range requests.Items {
		left = append(left, "request "+requests.Items[i].Name)
	}
	return left, nil
}

func leftOn(m *clusterv1.Machine) []string {
	var left []string
	for _, key := range []string{v1alpha1.UnhealthyAnnotation, clusterv1.DeleteMachineAnnotation} {
		if value, there := m.Annotations[key]; there {
			left = append(left, fmt.Sprintf("%s on %s: %s", key, m.Name, value))
		}
	}
	for i := range m.Status.Conditions {
		k := &m.Status.Conditions[i]
		if k.Type == clusterv1.MachineOwnerRemediatedCondition || k.Type == clusterv1.MachineExternallyRemediatedCondition {
			left = append(left, fmt.Sprintf("condition %s=%s on %s", k.Type, k.Status, m.Name))
		}
	}
	return left
}
