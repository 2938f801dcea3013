package mover

import (
	"slices"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// hostedKinds returns the kinds of control planes that always run as workloads of the management cluster: those of k0smotron, Kamaji,
// HyperShift, the hosted control plane provider, the nested provider and vcluster.
func hostedKinds() []string {
	return []string{
		"K0smotronControlPlane.controlplane." + object.CoreGroup,
		"KamajiControlPlane.controlplane." + object.CoreGroup,
		"HostedControlPlane.controlplane." + object.CoreGroup,
		"HostedControlPlane.hypershift.openshift.io",
		"NestedControlPlane.controlplane." + object.CoreGroup,
		"VCluster.infrastructure." + object.CoreGroup,
	}
}

// hosted returns why a control plane or a machine runs as a workload of the management cluster, or "" if it does not. A control plane of
// another kind counts if it is available and has replicas, but owns no Machine. A managed control plane of a cloud has no replicas.
func (g *graph) hosted(n *node) string {
	if slices.Contains(hostedKinds(), n.o.Ref.GroupKind()) {
		return "it is a hosted control plane"
	}
	if n.o.Local && !slices.ContainsFunc(g.nodes, func(c *node) bool {
		return c.o.Ref.Kind == "KubevirtCluster" && c.o.Names(object.InfraClusterField) && c.o.Ref.Namespace == n.o.Ref.Namespace && g.clusterOf(c) == g.clusterOf(n)
	}) {
		return "its virtual machine is in this management cluster, because no " + object.InfraClusterField + " names another one"
	}
	if n.o.Replicas == 0 || slices.ContainsFunc(n.down, func(child *node) bool { return child.o.Machine != nil }) {
		return ""
	}
	available := slices.ContainsFunc(g.clusters, func(c *node) bool {
		return c.o.Cluster != nil && c.o.Cluster.ControlPlane == n.o.Ref && c.o.Cluster.ControlPlaneInitialized
	})
	if !available || pause.IsCluster(n.o.Ref) {
		return ""
	}
	return "it is an available control plane with replicas and owns no Machine, so it is a hosted one"
}
