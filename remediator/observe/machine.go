package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// Facts returns the facts of a machine of a cluster, except its infrastructure machine and its request.
func Facts(m *clusterv1.Machine, cluster *clusterv1.Cluster, controlPlane bool) remediator.Machine {
	f := machine(m)
	setStartup(&f, cluster, controlPlane)
	return f
}

// machine returns the facts of a Machine, except its infrastructure machine and its request.
func machine(m *clusterv1.Machine) remediator.Machine {
	f := remediator.Machine{
		Name: m.Name, UID: m.UID, Created: m.CreationTimestamp.Time,
		Node: nodeOf(m), FailureDomain: domainOf(m),
		Conditions:          make(map[string]remediator.Condition, len(m.Status.Conditions)),
		Hooks:               hooks(m.Annotations),
		Paused:              paused(m),
		UnhealthyAnnotation: m.Annotations[v1alpha1.UnhealthyAnnotation],
		Needed:              m.Annotations[object.NeededAnnotation],
		Certificates:        m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation],
		RemediationFor:      m.Annotations[controlplanev1.RemediationForAnnotation],
	}
	if expiry := m.Status.CertificatesExpiryDate; !expiry.IsZero() {
		f.CertificatesStatus = expiry.UTC().Format(time.RFC3339)
	}
	if by := metav1.GetControllerOfNoCopy(m); by != nil && by.Kind == string(remediator.Set) {
		f.Set = by.Name
	}
	if m.DeletionTimestamp != nil {
		f.Deleting, f.DeletingSince = true, m.DeletionTimestamp.Time
		f.Draining, f.Detaching = waitingSince(m)
	}
	_, f.SkipsDrain = m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	_, f.SkipsDetach = m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	_, f.Skip = m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	_, f.Remediate = m.Annotations[clusterv1.RemediateMachineAnnotation]
	if value, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
		f.DeleteAnnotation = cmp.Or(value, noValue)
	}
	for _, c := range m.Status.Conditions {
		f.Conditions[c.Type] = remediator.Condition{Status: object.ConditionStatus(c.Status), Reason: c.Reason, Since: c.LastTransitionTime.Time}
	}
	return f
}

// setStartup sets when the node startup timeout of a machine begins, and whether the machine is exempt, as a MachineHealthCheck does
// (needsRemediation in its reconciler).
func setStartup(m *remediator.Machine, cluster *clusterv1.Cluster, controlPlane bool) {
	begins := func(isTrue bool, since time.Time) bool {
		if isTrue && since.After(m.Startup) {
			m.Startup = since
		}
		return isTrue
	}
	ofCluster := func(condition string) bool {
		c := meta.FindStatusCondition(cluster.Status.Conditions, condition)
		return c != nil && begins(c.Status == metav1.ConditionTrue, c.LastTransitionTime.Time)
	}
	initialized, ready := ofCluster(clusterv1.ClusterControlPlaneInitializedCondition), ofCluster(clusterv1.ClusterInfrastructureReadyCondition)
	m.Exempt = !ready || !initialized && !controlPlane
	own := m.Conditions[clusterv1.MachineInfrastructureReadyCondition]
	begins(own.Status == object.True, own.Since)
}

// waitingSince returns the times since which the deletion of a machine has waited for the drain of
// its Node and for the detachment of its volumes. The times remain after the wait, so the condition
// determines which wait continues.
func waitingSince(m *clusterv1.Machine) (drain, detach time.Time) {
	deleting := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineDeletingCondition)
	switch {
	case deleting == nil || m.Status.Deletion == nil:
	case deleting.Reason == clusterv1.MachineDeletingDrainingNodeReason:
		drain = m.Status.Deletion.NodeDrainStartTime.Time
	case deleting.Reason == clusterv1.MachineDeletingWaitingForVolumeDetachReason:
		detach = m.Status.Deletion.WaitForNodeVolumeDetachStartTime.Time
	}
	return drain, detach
}

// nodeOf returns the printable name of a machine's Node, which is set by the workload cluster.
func nodeOf(m *clusterv1.Machine) string { return object.Printable(m.Status.NodeRef.Name) }

// domainOf returns the failure domain of a machine, or the failure domain in which it will be created.
func domainOf(m *clusterv1.Machine) string {
	return cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain)
}

// noValue represents a delete annotation without a value, as kubectl annotate sets it, because "" means that there is none.
const noValue = "(no value)"

// hooks returns the deletion hooks, except the owner's, in the form of hookName.
func hooks(annotations map[string]string) []string {
	var names []string
	for key := range annotations {
		if isHook(key) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			names = append(names, hookName(key))
		}
	}
	slices.Sort(names)
	return names
}

func isHook(key string) bool {
	return strings.HasPrefix(key, clusterv1.PreDrainDeleteHookAnnotationPrefix) || strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
}

// hookName returns a short name with the phase: "pre-drain/etcd-backup".
func hookName(key string) string {
	for prefix, phase := range map[string]string{
		clusterv1.PreDrainDeleteHookAnnotationPrefix: "pre-drain", clusterv1.PreTerminateDeleteHookAnnotationPrefix: "pre-terminate",
	} {
		if name, found := strings.CutPrefix(key, prefix); found {
			return phase + "/" + strings.TrimPrefix(name, "/")
		}
	}
	return key
}

// suspect reports whether a machine may need more facts, each of which costs a request. A healthy machine costs none.
func suspect(f *remediator.Machine) bool {
	if f.Request != nil || f.UnhealthyAnnotation != "" || f.DeleteAnnotation != "" || f.Remediate {
		return true
	}
	is := func(condition string, status object.ConditionStatus) bool {
		return f.Conditions[condition].Status == status
	}
	return is(clusterv1.MachineHealthCheckSucceededCondition, object.False) || !is(clusterv1.MachineReadyCondition, object.True) ||
		is(clusterv1.MachineUpToDateCondition, object.False)
}
