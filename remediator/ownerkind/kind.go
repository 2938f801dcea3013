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

// All returns the kinds from which scute can request replacements, control planes first.
func All() []Kind {
	return []Kind{kubeadmControlPlane(), machineDeployment(), machineSet()}
}

// Kind is a kind of owner, in the version that scute reads.
type Kind struct {
	Name         remediator.OwnerKind
	GroupVersion schema.GroupVersion
	// Resource is its plural name in paths of the API server.
	Resource string
	// Provider is the name of its provider in clusterctl's inventory, "" for a kind without tested versions. Tested are the minor versions of the
	// provider whose internal bookkeeping (the annotations remediation-in-progress and cloned-from-name) was tested.
	Provider string
	Tested   []string
	// ThroughSets reports whether its machines belong to MachineSets that it controls.
	ThroughSets bool

	// New returns an object of the kind, to be read into, and NewList a list.
	New     func() client.Object
	NewList func() client.ObjectList

	scheme   func(*runtime.Scheme) error
	as       func(client.Object) (Owner, bool)
	topology func(c *clusterv1.Cluster, entry string) **int32
}

// Owner is an owner of machines that was read.
type Owner interface {
	client.Object
	OwnerKind() remediator.OwnerKind
	// Owner identifies this object, or its controller if that replaces its machines. Cluster is "" if it names none.
	Owner() remediator.Owner
	// Replicas returns the replicas in its spec. nil means 1, the default of the API.
	Replicas() *int32
	SetReplicas(replicas int32)
	ObservedGeneration() int64
	GetConditions() []metav1.Condition
	// Fill sets the facts that depend on the kind. The facts of all objects, and the replicas, are set before.
	Fill(f *remediator.OwnerFacts, below Children)
	// TopologyEntry returns its name in the topology of its Cluster, "" for a control plane.
	TopologyEntry() string
	// ManagedBy returns the kind and name of the object that overrides its replicas, "" if there is none.
	ManagedBy() string
	// RelaxesPreflight reports whether the kind supports the annotation remediation-in-progress.
	RelaxesPreflight() bool
	// Outdates reports whether the value of a trigger on a machine makes the owner replace the machine. It returns an error if the trigger has no
	// effect with this owner, ErrTriggerOff if the owner's spec disables it.
	Outdates(trigger remediator.RolloutTrigger, value string, now time.Time) (bool, error)
	// strip removes everything from its spec and status that no fact needs.
	strip()
}

// ErrTriggerOff means that the owner's spec disables a trigger.
var ErrTriggerOff = errors.New("the trigger is off")

// Children holds the machines of an owner, and the MachineSets that it controls.
type Children struct {
	Machines []*clusterv1.Machine
	Sets     []clusterv1.MachineSet
}

// plain implements a kind without a topology, a controller or a trigger.
type plain struct{}

func (plain) TopologyEntry() string  { return "" }
func (plain) ManagedBy() string      { return "" }
func (plain) RelaxesPreflight() bool { return false }
func (plain) Outdates(trigger remediator.RolloutTrigger, _ string, _ time.Time) (bool, error) {
	return false, fmt.Errorf("the owner replaces no single machine for its %s", trigger)
}

func converter[T client.Object](wrap func(T) Owner) func(client.Object) (Owner, bool) {
	return func(o client.Object) (Owner, bool) {
		if is, ok := o.(T); ok {
			return wrap(is), true
		}
		return nil, false
	}
}

// Named returns the kind with the name that remediator.Owner uses.
func Named(kind string) (Kind, bool) {
	all := All()
	i := slices.IndexFunc(all, func(k Kind) bool { return string(k.Name) == kind })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// As returns the owner that an object contains; false for an object of another kind.
func As(o client.Object) (Owner, bool) {
	for _, k := range All() {
		if owner, ok := k.as(o); ok {
			return owner, true
		}
	}
	return nil, false
}

// Items returns the owners in a list.
func Items(list client.ObjectList) []Owner {
	var owners []Owner
	// EachListItem fails for an object that is not a list, which has no owners.
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

// Of returns the kind that a reference names. If another group has a kind with a known name, its group is appended to the name.
func Of(ref *metav1.OwnerReference) string {
	group := GroupOf(ref.APIVersion)
	if k, known := Named(ref.Kind); known && k.GroupVersion.Group != group {
		return ref.Kind + "." + group
	}
	return ref.Kind
}

// GroupOf returns the group of an apiVersion, "" for the core group.
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

// GroupVersionKind returns the kind for the API server.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return k.GroupVersion.WithKind(string(k.Name))
}

// Strip removes everything from the spec and the status of an object of the kind that no fact needs.
func (k Kind) Strip(o client.Object) {
	if owner, ok := k.as(o); ok {
		owner.strip()
	}
}

// TopologyReplicas returns the field in a Cluster's topology with the replicas of an owner of the kind, nil if there is none.
func (k Kind) TopologyReplicas(c *clusterv1.Cluster, entry string) **int32 {
	if k.topology == nil || !c.Spec.Topology.IsDefined() {
		return nil
	}
	return k.topology(c, entry)
}

func identity(o Owner, cluster string) remediator.Owner {
	return remediator.Owner{Kind: string(o.OwnerKind()), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Cluster: cluster}
}

// clusterOf returns the cluster of a control plane. It prefers the owner reference, because not every control plane has the label.
func clusterOf(o client.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == clusterv1.ClusterKind && GroupOf(ref.APIVersion) == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return o.GetLabels()[clusterv1.ClusterNameLabel]
}
