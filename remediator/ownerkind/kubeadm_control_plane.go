package ownerkind

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/remediator"
)

type controlPlane struct {
	plain
	*controlplanev1.KubeadmControlPlane
}

// Owner prefers the owner reference to the label of the cluster, because not every control plane has the label.
func (o controlPlane) Owner() remediator.Owner {
	for _, ref := range o.OwnerReferences {
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind).GroupKind() {
			return identity(o, ref.Name)
		}
	}
	return identity(o, o.Labels[clusterv1.ClusterNameLabel])
}

func (o controlPlane) OwnerKind() remediator.OwnerKind { return remediator.ControlPlane }
func (o controlPlane) Replicas() *int32                { return o.Spec.Replicas }
func (o controlPlane) SetReplicas(replicas int32)      { o.Spec.Replicas = &replicas }
func (o controlPlane) ObservedGeneration() int64       { return o.Status.ObservedGeneration }
func (o controlPlane) RelaxesPreflight() bool          { return true }

func (o controlPlane) Fill(f *remediator.OwnerFacts, below Children) {
	if surge := o.Spec.Rollout.Strategy.RollingUpdate.MaxSurge; surge != nil {
		f.MaxSurge = int32(surge.IntValue()) //nolint:gosec // the API allows 0 and 1
	}
	f.Version = o.Spec.Version
	external := o.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External
	f.ExternalEtcd = external.IsDefined()
	f.CertificateTrigger = o.Spec.Rollout.Before.CertificatesExpiryDays > 0
	f.Uninitialized = !ptr.Deref(o.Status.Initialization.ControlPlaneInitialized, false)
	f.Refused = refusal(o.KubeadmControlPlane)
	f.Retry = retryOf(o.Spec.Remediation)
	f.RollingOut = rollingOut(below.Machines, f.Version)
}

// retryOf returns the retry limits with the defaults of KubeadmControlPlane's controller.
func retryOf(spec controlplanev1.KubeadmControlPlaneRemediationSpec) remediator.Retry {
	seconds := func(n *int32, without int32) time.Duration { return time.Duration(ptr.Deref(n, without)) * time.Second }
	return remediator.Retry{
		Max: spec.MaxRetry, Period: seconds(spec.RetryPeriodSeconds, 0), MinHealthy: seconds(spec.MinHealthyPeriodSeconds, controlplanev1.DefaultMinHealthyPeriodSeconds),
	}
}

func (o controlPlane) Outdates(trigger remediator.RolloutTrigger, value string, now time.Time) (bool, error) {
	if trigger == remediator.TriggerClonedFrom {
		return value != "" && value != o.Spec.MachineTemplate.Spec.InfrastructureRef.Name, nil
	}
	if value == "" {
		return false, nil
	}
	expires, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return false, fmt.Errorf("the expiry of the certificates must be a time in the format of RFC 3339: %w", err)
	}
	days := int(o.Spec.Rollout.Before.CertificatesExpiryDays)
	if days == 0 && !expires.After(now) {
		return false, fmt.Errorf("%w: the control plane's spec.rollout.before.certificatesExpiryDays is not set, so it replaces no machine for its certificates", ErrTriggerOff)
	}
	return days > 0 && expires.Before(now.AddDate(0, 0, days)), nil
}

func (o controlPlane) Strip() {
	refused := refusal(o.KubeadmControlPlane)
	spec := controlplanev1.KubeadmControlPlaneSpec{Replicas: o.Spec.Replicas, Version: o.Spec.Version, Rollout: o.Spec.Rollout, Remediation: o.Spec.Remediation}
	spec.MachineTemplate.Spec.InfrastructureRef = o.Spec.MachineTemplate.Spec.InfrastructureRef
	if external := o.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External; external.IsDefined() {
		spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: external.Endpoints}
	}
	o.Spec = spec
	o.Status = controlplanev1.KubeadmControlPlaneStatus{
		Conditions: o.Status.Conditions, Initialization: o.Status.Initialization, Replicas: o.Status.Replicas, ReadyReplicas: o.Status.ReadyReplicas,
		ObservedGeneration: o.Status.ObservedGeneration, LastRemediation: o.Status.LastRemediation,
	}
	storeRefusal(o.KubeadmControlPlane, refused)
}
