package mover

import (
	"slices"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// hostedKinds are the control planes that are known to run as workloads of the management cluster: of k0smotron, Kamaji, HyperShift, the
// hosted control plane provider, the nested provider and vcluster.
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

// hosted returns why a control plane or a machine runs as a workload of the management cluster; "" if it does not. Control planes of unknown kinds are
// judged by what they have: one that is available and counts replicas has them in Machines, or hosted. A managed control plane of a
// cloud counts none.
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
