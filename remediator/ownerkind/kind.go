package ownerkind

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
)

// All are the kinds that scute knows how to ask, those of control planes first.
func All() []Kind {
	return []Kind{kubeadmControlPlane(), machineDeployment(), machineSet()}
}

// Kind is a kind of owner, in the version that scute reads.
type Kind struct {
	Name         remediator.OwnerKind
	GroupVersion schema.GroupVersion
	// Resource is its name in the paths of the API server.
	Resource string
	// Provider is the name of its provider in clusterctl's inventory, and Tested are those of its minor versions whose inner
	// bookkeeping (the annotations remediation-in-progress and cloned-from-name) was tested; "" for a kind without any.
	Provider string
	Tested   []string
	// ThroughSets: its machines belong to MachineSets that it controls.
	ThroughSets bool

	// New returns an object of the kind, to be read into, and NewList a list.
	New     func() client.Object
	NewList func() client.ObjectList

	scheme   func(*runtime.Scheme) error
	as       func(client.Object) (Owner, bool)
	topology func(c *clusterv1.Cluster, entry string) **int32
}

// Owner is one owner of machines, as it was read.
type Owner interface {
	client.Object
	OwnerKind() remediator.OwnerKind
	// Owner names it, or what controls it and replaces its machines. Its Cluster is "" where it names none.
	Owner() remediator.Owner
	// Replicas that its spec asks for; nil is 1, by the API's default.
	Replicas() *int32
	SetReplicas(replicas int32)
	ObservedGeneration() int64
	GetConditions() []metav1.Condition
	// Fill sets the facts that depend on the kind. Those of every object, and its replicas, are set before.
	Fill(f *remediator.OwnerFacts, below Below)
	// TopologyEntry is its name in the topology of its Cluster, "" for a control plane.
	TopologyEntry() string
	// ManagedBy is the kind and name of what overrules the replicas that are asked of it, "" without.
	ManagedBy() string
	// RelaxesPreflight says that the kind knows the annotation remediation-in-progress.
	RelaxesPreflight() bool
	// Outdates says that the value of a trigger, on a machine, has the owner replace the machine; err that the trigger does
	// nothing with this owner, ErrTriggerOff if its spec says so.
	Outdates(trigger remediator.RolloutTrigger, value string, now time.Time) (bool, error)
	// strip removes what no fact is made of, from its spec and status.
	strip()
}

// ErrTriggerOff says that an owner is told to replace no machine for a trigger.
var ErrTriggerOff = errors.New("the trigger is off")

// Below is what belongs to an owner: its machines, and the MachineSets that it controls.
type Below struct {
	Machines []*clusterv1.Machine
	Sets     []clusterv1.MachineSet
}

// plain is what a kind is without more: no topology, nothing above it, and no trigger.
type plain struct{}

func (plain) TopologyEntry() string  { return "" }
func (plain) ManagedBy() string      { return "" }
func (plain) RelaxesPreflight() bool { return false }
func (plain) Outdates(trigger remediator.RolloutTrigger, _ string, _ time.Time) (bool, error) {
	return false, fmt.Errorf("the owner replaces no single machine for its %s", trigger)
}

// wraps makes the conversion of a kind: objects of its type become Owners.
func wraps[T client.Object](wrap func(T) Owner) func(client.Object) (Owner, bool) {
	return func(o client.Object) (Owner, bool) {
		if is, ok := o.(T); ok {
			return wrap(is), true
		}
		return nil, false
	}
}

// Named is the kind of a name, as remediator.Owner has it.
func Named(kind string) (Kind, bool) {
	all := All()
	i := slices.IndexFunc(all, func(k Kind) bool { return string(k.Name) == kind })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// As is the owner that was read into an object; false for an object of another kind.
func As(o client.Object) (Owner, bool) {
	for _, k := range All() {
		if owner, ok := k.as(o); ok {
			return owner, true
		}
	}
	return nil, false
}

// Items are the owners of a list.
func Items(list client.ObjectList) []Owner {
	var owners []Owner
	// It fails for what is no list, which has no owners.
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if is, ok := o.(client.Object); ok {
			if owner, ok := As(is); ok {
				owners = append(owners, owner)
			}
		}
		return nil
	})
	return owners
}

// Of is the kind that a reference names. A kind of another group with the name of a known one has its group behind its name.
func Of(ref *metav1.OwnerReference) string {
	group := GroupOf(ref.APIVersion)
	if k, known := Named(ref.Kind); known && k.GroupVersion.Group != group {
		return ref.Kind + "." + group
	}
	return ref.Kind
}

// GroupOf is the group of an apiVersion, "" for the core group.
func GroupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// AddToScheme registers all kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	var errs []error
	for _, k := range All() {
		errs = append(errs, k.scheme(scheme))
	}
	return errors.Join(errs...)
}

// GroupVersionKind is what the API server calls the kind.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return k.GroupVersion.WithKind(string(k.Name))
}

// Strip removes from the spec and the status of an object of the kind what no fact is made of.
func (k Kind) Strip(o client.Object) {
	if owner, ok := k.as(o); ok {
		owner.strip()
	}
}

// TopologyReplicas is the place in a Cluster's topology that holds the replicas of an owner of the kind; nil where there is none.
func (k Kind) TopologyReplicas(c *clusterv1.Cluster, entry string) **int32 {
	if k.topology == nil || !c.Spec.Topology.IsDefined() {
		return nil
	}
	return k.topology(c, entry)
}

func identity(o Owner, cluster string) remediator.Owner {
	return remediator.Owner{Kind: string(o.OwnerKind()), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Cluster: cluster}
}

// clusterOf is the cluster of a control plane, from its owner reference: the label is not on every one.
func clusterOf(o client.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == clusterv1.ClusterKind && GroupOf(ref.APIVersion) == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return o.GetLabels()[clusterv1.ClusterNameLabel]
}
