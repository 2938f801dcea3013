package observe

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator/ownerkind"
)

// stripped returns a transform that calls strip for each object before it is cached, so that a
// thousand clusters need little memory. It does not change tombstones.
func stripped[T client.Object](strip func(T)) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if o, ok := in.(T); ok {
			strip(o)
		}
		return in, nil
	}
}

// stripMeta removes the metadata that facts do not need. It keeps annotations for which a function
// in also returns true.
func stripMeta(o client.Object, also ...func(key, value string) bool) {
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	v1alpha1.SlimMeta(o)
	annotations := o.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, value string) bool {
		return !neededForFacts(key) && !slices.ContainsFunc(also, func(keep func(key, value string) bool) bool { return keep(key, value) })
	})
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

func neededForFacts(key string) bool {
	switch key {
	case clusterv1.PausedAnnotation, clusterv1.MachineSkipRemediationAnnotation, clusterv1.RemediateMachineAnnotation, clusterv1.DeleteMachineAnnotation,
		clusterv1.MachineCertificatesExpiryDateAnnotation, controlplanev1.RemediationInProgressAnnotation, controlplanev1.RemediationForAnnotation,
		clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation,
		clusterv1.RevisionAnnotation, clusterv1.ClusterTopologyUpgradeStepAnnotation, clusterv1.MachineSetMoveMachinesToMachineSetAnnotation:
		return true
	default:
		_, hook := hookName(key)
		return hook || strings.HasPrefix(key, object.OwnPrefix)
	}
}

func stripMachine(m *clusterv1.Machine) {
	stripMeta(m, notable)
	addresses := etcdAddresses(m)
	m.Spec = clusterv1.MachineSpec{
		ClusterName: m.Spec.ClusterName, InfrastructureRef: m.Spec.InfrastructureRef, Version: m.Spec.Version, FailureDomain: m.Spec.FailureDomain,
	}
	m.Status = clusterv1.MachineStatus{
		Conditions: m.Status.Conditions, NodeRef: m.Status.NodeRef, FailureDomain: m.Status.FailureDomain, Phase: m.Status.Phase,
		ObservedGeneration: m.Status.ObservedGeneration, CertificatesExpiryDate: m.Status.CertificatesExpiryDate, Deletion: m.Status.Deletion,
	}
	if len(addresses) > 0 {
		m.Status.Addresses = slices.Clone(addresses)
	}
	dropMessages(m.Status.Conditions, clusterv1.MachineUpToDateCondition)
}

func stripOwner(o client.Object) {
	stripMeta(o)
	if owner, ok := ownerkind.As(o); ok {
		owner.Strip()
		dropMessages(owner.GetConditions())
	}
}

func stripCluster(c *clusterv1.Cluster) {
	stripMeta(c)
	topology := clusterv1.Topology{ClassRef: c.Spec.Topology.ClassRef, Version: c.Spec.Topology.Version}
	topology.ControlPlane.Replicas = c.Spec.Topology.ControlPlane.Replicas
	for _, d := range c.Spec.Topology.Workers.MachineDeployments {
		topology.Workers.MachineDeployments = append(topology.Workers.MachineDeployments,
			clusterv1.MachineDeploymentTopology{Class: d.Class, Name: d.Name, Replicas: d.Replicas})
	}
	c.Spec = clusterv1.ClusterSpec{Paused: c.Spec.Paused, ControlPlaneRef: c.Spec.ControlPlaneRef, Topology: topology}
	for i := range c.Status.FailureDomains {
		c.Status.FailureDomains[i].Attributes = nil
	}
	c.Status = clusterv1.ClusterStatus{
		Initialization: c.Status.Initialization, FailureDomains: c.Status.FailureDomains, ObservedGeneration: c.Status.ObservedGeneration,
		Conditions: slices.DeleteFunc(c.Status.Conditions, func(c metav1.Condition) bool {
			return !slices.Contains([]string{clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.PausedCondition}, c.Type)
		}),
	}
	dropMessages(c.Status.Conditions)
}

// stripHealthCheck strips a MachineHealthCheck. It removes a selector that is larger than the spec
// of a policy may be, so that the MachineHealthCheck counts as selecting every machine of its
// cluster.
func stripHealthCheck(c *clusterv1.MachineHealthCheck) {
	stripMeta(c)
	if data, err := json.Marshal(c.Spec.Selector); err != nil || len(data) > v1alpha1.SpecBytes {
		c.Spec.Selector = metav1.LabelSelector{}
	}
	c.Status.Targets = nil
	dropMessages(c.Status.Conditions)
}

// dropMessages removes the messages of all conditions whose types are not in keep, because messages
// are the largest part of a status and change most often. It also interns the conditions' strings,
// which thousands of objects share.
func dropMessages(conditions []metav1.Condition, keep ...string) {
	for i := range conditions {
		c := &conditions[i]
		if !slices.Contains(keep, c.Type) {
			c.Message = ""
		}
		c.Type, c.Reason, c.Status = unique.Make(c.Type).Value(), unique.Make(c.Reason).Value(), unique.Make(c.Status).Value()
	}
}
