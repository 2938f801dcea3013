package ownerkind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
)

func machineSet() Kind {
	return Kind{
		Name: remediator.Set, GroupVersion: clusterv1.GroupVersion, Resource: "machinesets",
		scheme: clusterv1.AddToScheme,
		object: func() client.Object { return &clusterv1.MachineSet{} }, list: func() client.ObjectList { return &clusterv1.MachineSetList{} },
		as: wraps(func(o *clusterv1.MachineSet) Owner { return set{MachineSet: o} }),
	}
}

type set struct {
	plain
	*clusterv1.MachineSet
}

// Owner is the MachineDeployment that controls the MachineSet, else the MachineSet itself.
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

// Fill: a MachineSet never rolls out. A machine that is outdated stays.
func (o set) Fill(f *remediator.OwnerFacts, _ Below) { f.Version = o.Spec.Template.Spec.Version }

func (o set) strip() {
	o.Spec = clusterv1.MachineSetSpec{ClusterName: o.Spec.ClusterName, Replicas: o.Spec.Replicas, Template: version(o.Spec.Template)}
	o.Status = clusterv1.MachineSetStatus{
		Conditions: o.Status.Conditions, Replicas: o.Status.Replicas, ReadyReplicas: o.Status.ReadyReplicas, ObservedGeneration: o.Status.ObservedGeneration,
	}
}
