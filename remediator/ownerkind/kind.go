package ownerkind

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
)

// All returns the kinds of owners whose objects scute reads, control planes first. What is requested
// from them is in remediator.profileOf.
func All() []Kind {
	return []Kind{
		{
			Name: remediator.ControlPlane, GroupVersion: controlplanev1.GroupVersion, Resource: "kubeadmcontrolplanes",
			Provider: "kubeadm", Tested: []string{"v1.14"}, // test/remediation tests each
			New:     func() client.Object { return &controlplanev1.KubeadmControlPlane{} },
			NewList: func() client.ObjectList { return &controlplanev1.KubeadmControlPlaneList{} },
		},
		{
			Name: remediator.Deployment, GroupVersion: clusterv1.GroupVersion, Resource: "machinedeployments", ThroughSets: true,
			New:     func() client.Object { return &clusterv1.MachineDeployment{} },
			NewList: func() client.ObjectList { return &clusterv1.MachineDeploymentList{} },
		},
		{
			Name: remediator.Set, GroupVersion: clusterv1.GroupVersion, Resource: "machinesets",
			New:     func() client.Object { return &clusterv1.MachineSet{} },
			NewList: func() client.ObjectList { return &clusterv1.MachineSetList{} },
		},
	}
}

// Kind is a kind of owner, in the version that scute reads.
type Kind struct {
	Name         remediator.OwnerKind
	GroupVersion schema.GroupVersion
	// Resource is its plural name in paths of the API server.
	Resource string
	// Provider is the name of its provider in clusterctl's inventory, "" for a kind without tested
	// versions. Tested are the minor versions of the provider whose internal bookkeeping (the
	// annotations remediation-in-progress and cloned-from-name) was tested.
	Provider string
	Tested   []string
	// ThroughSets reports whether its machines belong to MachineSets that it controls.
	ThroughSets bool

	// New returns an object of the kind, to be read into, and NewList a list.
	New     func() client.Object
	NewList func() client.ObjectList
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
	// Fill sets the facts that depend on the kind. The caller has already set the facts that every
	// kind has, and the replicas.
	Fill(f *remediator.OwnerFacts, below Children)
	// TopologyEntry returns its name in the topology of its Cluster, "" for a control plane.
	TopologyEntry() string
	// ManagedBy returns the kind and name of the object that overrides its replicas, "" if there is none.
	ManagedBy() string
	// RelaxesPreflight reports whether the kind supports the annotation remediation-in-progress.
	RelaxesPreflight() bool
	// Outdates reports whether the value of a trigger on a machine makes the owner replace the
	// machine. It returns an error if the trigger has no effect with this owner, ErrTriggerOff if
	// the owner's spec disables it.
	Outdates(trigger remediator.RolloutTrigger, value string, now time.Time) (bool, error)
	// Strip removes everything from its spec and status that no fact needs.
	Strip()
}

// ErrTriggerOff means that the owner's spec disables a trigger.
var ErrTriggerOff = errors.New("the trigger is off")

// Children holds the machines of an owner, and the MachineSets that it controls.
type Children struct {
	Machines []*clusterv1.Machine
	Sets     []clusterv1.MachineSet
}

// plain has the defaults of an owner without a topology, a managing object, or rollout triggers.
type plain struct{}

func (plain) TopologyEntry() string  { return "" }
func (plain) ManagedBy() string      { return "" }
func (plain) RelaxesPreflight() bool { return false }
func (plain) Outdates(trigger remediator.RolloutTrigger, _ string, _ time.Time) (bool, error) {
	return false, fmt.Errorf("the owner replaces no single machine for its %s", trigger)
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
	switch o := o.(type) {
	case *controlplanev1.KubeadmControlPlane:
		return controlPlane{KubeadmControlPlane: o}, true
	case *clusterv1.MachineDeployment:
		return deployment{MachineDeployment: o}, true
	case *clusterv1.MachineSet:
		return set{MachineSet: o}, true
	default:
		return nil, false
	}
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

// Of returns the kind that a reference names. If another group has a kind with a known name, its
// group is appended to the name.
func Of(ref *metav1.OwnerReference) string {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	if k, known := Named(ref.Kind); known && k.GroupVersion.Group != group {
		return ref.Kind + "." + group
	}
	return ref.Kind
}

// AddToScheme registers all kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme))
}

// GroupVersionKind returns the kind for the API server.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return k.GroupVersion.WithKind(string(k.Name))
}

// TopologyReplicas returns the field in a Cluster's topology with the replicas of an owner of the
// kind, or nil if there is none.
func (k Kind) TopologyReplicas(c *clusterv1.Cluster, entry string) **int32 {
	switch topology := &c.Spec.Topology; {
	case !topology.IsDefined():
	case k.Name.IsControlPlane():
		return &topology.ControlPlane.Replicas
	case k.Name == remediator.Deployment && entry != "":
		for i := range topology.Workers.MachineDeployments {
			if d := &topology.Workers.MachineDeployments[i]; d.Name == entry {
				return &d.Replicas
			}
		}
	}
	return nil
}

func identity(o Owner, cluster string) remediator.Owner {
	return remediator.Owner{Kind: string(o.OwnerKind()), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Cluster: cluster}
}
