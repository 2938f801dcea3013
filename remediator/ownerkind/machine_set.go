package ownerkind

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

type set struct {
	plain
	*clusterv1.MachineSet
}

// Owner returns the MachineDeployment that controls the MachineSet, otherwise the MachineSet itself.
func (o set) Owner() remediator.Owner {
	by := metav1.GetControllerOfNoCopy(o)
	if by == nil {
		return identity(o, o.Spec.ClusterName)
	}
	return remediator.Owner{Kind: Of(by), Namespace: o.Namespace, Name: by.Name, UID: by.UID, Cluster: o.Spec.ClusterName}
}
func (o set) OwnerKind() remediator.OwnerKind { return remediator.Set }
func (o set) Replicas() *int32                { return o.Spec.Replicas }
func (o set) SetReplicas(replicas int32)      { o.Spec.Replicas = &replicas }
func (o set) ObservedGeneration() int64       { return o.Status.ObservedGeneration }

func (o set) ManagedBy() string {
	if by := metav1.GetControllerOfNoCopy(o); by != nil {
		return by.Kind + " " + by.Name
	}
	return ""
}

// Fill sets no RollingOut, because a MachineSet never replaces an outdated machine.
func (o set) Fill(f *remediator.OwnerFacts, _ Children) {
	f.Version, f.Refused = o.Spec.Template.Spec.Version, refusal(o.MachineSet)
}

// refusal returns why an owner could not create a machine when it last tried, "" if it could. The
// condition remains until the owner has all machines. It reports failed preflight checks
// (runPreflightChecks in core/reconcilers/machineset) and errors of the API server.
func refusal(o interface{ GetV1Beta1Conditions() clusterv1.Conditions }) string {
	for _, c := range o.GetV1Beta1Conditions() {
		if c.Type == clusterv1.MachinesCreatedV1Beta1Condition && c.Status == corev1.ConditionFalse {
			return object.Truncate(c.Message, maxRefusal)
		}
	}
	return ""
}

// storeRefusal stores a refusal in the condition that refusal reads.
func storeRefusal(o interface{ SetV1Beta1Conditions(clusterv1.Conditions) }, refused string) {
	if refused != "" {
		o.SetV1Beta1Conditions(clusterv1.Conditions{{Type: clusterv1.MachinesCreatedV1Beta1Condition, Status: corev1.ConditionFalse, Message: refused}})
	}
}

// maxRefusal bounds a refusal in bytes, because texts of an API server are unbounded.
const maxRefusal = 500

func (o set) Strip() {
	refused := refusal(o.MachineSet)
	o.Spec = clusterv1.MachineSetSpec{ClusterName: o.Spec.ClusterName, Replicas: o.Spec.Replicas, Template: version(o.Spec.Template)}
	o.Status = clusterv1.MachineSetStatus{
		Conditions: o.Status.Conditions, Replicas: o.Status.Replicas, ReadyReplicas: o.Status.ReadyReplicas, ObservedGeneration: o.Status.ObservedGeneration,
	}
	storeRefusal(o.MachineSet, refused)
}
