package observe

import (
	"maps"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
)

// stripped is what the cache keeps of a kind: a thousand clusters are to cost little memory. What comes by another way
// (a tombstone) stays as it is.
func stripped[T client.Object](strip func(T)) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if o, ok := in.(T); ok {
			strip(o)
		}
		return in, nil
	}
}

// stripMeta keeps of annotations those that facts, hooks and triggers are made of.
func stripMeta(o client.Object, also ...func(key, value string) bool) {
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	annotations := o.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, value string) bool {
		return !telling(key) && !slices.ContainsFunc(also, func(keep func(key, value string) bool) bool { return keep(key, value) })
	})
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// notice annotations are those that facts are made of. What kubectl applied last is a second copy of the object.
func telling(key string) bool {
	switch key {
	case clusterv1.PausedAnnotation, clusterv1.MachineSkipRemediationAnnotation, clusterv1.RemediateMachineAnnotation, clusterv1.DeleteMachineAnnotation,
		clusterv1.MachineCertificatesExpiryDateAnnotation, controlplanev1.RemediationInProgressAnnotation, controlplanev1.RemediationForAnnotation,
		clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation,
		clusterv1.RevisionAnnotation, clusterv1.ClusterTopologyUpgradeStepAnnotation:
		return true
	default:
		return strings.HasPrefix(key, object.OwnPrefix) || isHook(key)
	}
}

func stripMachine(m *clusterv1.Machine) {
	stripMeta(m, notable)
	addresses := reachable(m)
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
	quiet(m.Status.Conditions, clusterv1.MachineUpToDateCondition)
}

func stripSet(s *clusterv1.MachineSet) {
	stripMeta(s)
	s.Spec = clusterv1.MachineSetSpec{ClusterName: s.Spec.ClusterName, Replicas: s.Spec.Replicas, Template: version(s.Spec.Template)}
	s.Status = clusterv1.MachineSetStatus{
		Conditions: s.Status.Conditions, Replicas: s.Status.Replicas, ReadyReplicas: s.Status.ReadyReplicas, ObservedGeneration: s.Status.ObservedGeneration,
	}
	quiet(s.Status.Conditions)
}

func stripDeployment(d *clusterv1.MachineDeployment) {
	stripMeta(d)
	d.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: d.Spec.ClusterName, Replicas: d.Spec.Replicas, Rollout: d.Spec.Rollout, Paused: d.Spec.Paused, Template: version(d.Spec.Template),
	}
	d.Status = clusterv1.MachineDeploymentStatus{
		Conditions: d.Status.Conditions, Replicas: d.Status.Replicas, ReadyReplicas: d.Status.ReadyReplicas, ObservedGeneration: d.Status.ObservedGeneration,
	}
	quiet(d.Status.Conditions)
}

func version(t clusterv1.MachineTemplateSpec) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: t.Spec.ClusterName, Version: t.Spec.Version}}
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
			return c.Type != clusterv1.ClusterControlPlaneInitializedCondition && c.Type != clusterv1.PausedCondition
		}),
	}
	quiet(c.Status.Conditions)
}

func stripControlPlane(k *controlplanev1.KubeadmControlPlane) {
	stripMeta(k)
	spec := controlplanev1.KubeadmControlPlaneSpec{Replicas: k.Spec.Replicas, Version: k.Spec.Version, Rollout: k.Spec.Rollout, Remediation: k.Spec.Remediation}
	spec.MachineTemplate.Spec.InfrastructureRef = k.Spec.MachineTemplate.Spec.InfrastructureRef
	if external := k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External; external.IsDefined() {
		spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: external.Endpoints}
	}
	k.Spec = spec
	k.Status = controlplanev1.KubeadmControlPlaneStatus{
		Conditions: k.Status.Conditions, Initialization: k.Status.Initialization, Replicas: k.Status.Replicas, ReadyReplicas: k.Status.ReadyReplicas,
		ObservedGeneration: k.Status.ObservedGeneration, LastRemediation: k.Status.LastRemediation,
	}
	quiet(k.Status.Conditions)
}

// quiet takes the messages out of conditions, but for those named: they are most of a status, and change most often.
// Strings that are the same in thousands of objects are stored once.
func quiet(conditions []metav1.Condition, but ...string) {
	for i := range conditions {
		c := &conditions[i]
		if !slices.Contains(but, c.Type) {
			c.Message = ""
		}
		c.Type, c.Reason, c.Status = unique.Make(c.Type).Value(), unique.Make(c.Reason).Value(), unique.Make(c.Status).Value()
	}
}
