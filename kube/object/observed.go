package object

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/api/v1alpha1"
)

// Names in Cluster API that decisions read.
const (
	CoreGroup               = "cluster.x-k8s.io"
	AddonsGroup             = "addons.cluster.x-k8s.io"
	ipamGroup               = "ipam.cluster.x-k8s.io"
	ClusterNameLabel        = clusterv1.ClusterNameLabel
	MoveLabel               = clusterctlv1.ClusterctlMoveLabel
	MoveHierarchyLabel      = clusterctlv1.ClusterctlMoveHierarchyLabel
	BlockMoveAnnotation     = clusterctlv1.BlockMoveAnnotation
	DeleteForMoveAnnotation = clusterctlv1.DeleteForMoveAnnotation
	PausedAnnotation        = clusterv1.PausedAnnotation
	// HostPausedAnnotation stops the controller of a Metal3 BareMetalHost. Metal3's provider sets
	// it, with a copy of the host's status, when the Metal3Machine that uses the host is paused.
	HostPausedAnnotation = "baremetalhost.metal3.io/paused"
)

// OwnGroup is the API group of scute's own kinds, which a move never moves.
const OwnGroup = "scute.dev"

// Annotations that scute sets. A move does not copy them.
const (
	OwnPrefix = OwnGroup + "/"
	// MoveAnnotation contains the ID of the move that paused a root at the source or created a copy
	// on the target.
	MoveAnnotation = OwnPrefix + "move"
	// LogAnnotation contains the ID of that move's event log, because a move with the same ID in
	// another log is another move.
	LogAnnotation = OwnPrefix + "log"
	// OriginAnnotation on a copy contains the UID of the original, if the move will delete the
	// original.
	OriginAnnotation = OwnPrefix + "origin"
	// FoundPausedAnnotation is on a root that was paused before the move, and on its copy.
	FoundPausedAnnotation = OwnPrefix + "found-paused"
	// EmptyingAnnotation on a root contains the ID of the move that has started to delete the
	// root's objects at the source. A root with the annotation must not be unpaused.
	EmptyingAnnotation = OwnPrefix + "emptying"
	// PauseAnnotation contains the ID of the pause by a task of a run.
	PauseAnnotation = OwnPrefix + "pause"
	// PausePrefix with the UID of a Pause is an annotation of a root that the Pause holds. The value
	// is the namespace and name of the Pause. A root can have several.
	PausePrefix = OwnPrefix + "pause."
	// PausedBeforeAnnotation is on a root that Pauses or a task of a run hold: "true" if it was
	// paused before the first of them, else "false". The last of them restores that state.
	PausedBeforeAnnotation = OwnPrefix + "paused-before"
	// TouchAnnotation is set and removed again to trigger a controller.
	TouchAnnotation = OwnPrefix + "touched"
	// NeededAnnotation on a Machine contains the reason why etcd needs the Machine. The chart's
	// ValidatingAdmissionPolicy prevents users from deleting such a Machine.
	NeededAnnotation = OwnPrefix + "needed"
	// CarriedAnnotation on a SurgeRemediation means that the hold and the abort of earlier ones for
	// its Machine were copied to it. If one of the two is missing, a user has removed it.
	CarriedAnnotation = OwnPrefix + "carried"
	// AcknowledgeTimeoutAnnotation on a CustomResourceDefinition contains the timeout for
	// acknowledging a pause. A timeout that the Move or the Pause sets for the kind overrides it.
	AcknowledgeTimeoutAnnotation = OwnPrefix + "acknowledge-timeout"
	// AddressesReservedAnnotation on an address pool or an IPAddress is a user's statement that no
	// pool can assign the addresses of moved clusters again.
	AddressesReservedAnnotation = OwnPrefix + "addresses-reserved"
)

// InfraClusterField is the field that names the kubeconfig of the cluster in which KubeVirt's
// virtual machines run.
const InfraClusterField = "spec.infraClusterSecretRef"

// OwnDeleteMachineValue is scute's value of the annotation cluster.x-k8s.io/delete-machine.
const OwnDeleteMachineValue = OwnGroup

// ConditionStatus is the status of a condition; Absent if there is no such condition.
type ConditionStatus string

// The values of a ConditionStatus.
const (
	Absent  ConditionStatus = ""
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Owner is an owner reference that can be restored in another cluster.
type Owner struct {
	Ref                Ref       `json:"ref"`
	Version            string    `json:"version"`
	UID                types.UID `json:"uid,omitempty"`
	Controller         *bool     `json:"controller,omitempty"`
	BlockOwnerDeletion *bool     `json:"blockOwnerDeletion,omitempty"`
}

// Observed contains the facts about an object that decisions need, and none of its content.
type Observed struct {
	Ref             Ref
	Version         string
	UID             types.UID
	ResourceVersion string
	Owners          []Owner
	ClusterName     string // from the label
	Deleting        bool
	Finalizers      int
	Movable         bool // labelled to be moved alone
	Hierarchy       bool // labelled to be moved with all its dependents
	BlockMove       bool
	KindBlocksMove  bool // its CustomResourceDefinition has the annotation block-move
	PausedByUser    bool // has the annotation paused
	Remediating     bool
	MoveID          string // scute.dev/move: the ID of the move that holds it
	MoveLogID       string // scute.dev/log: the log of that move; empty if an older version started the move
	// PauseHolders are the annotations of Pauses and of a task of a run that hold it paused.
	PauseHolders map[string]string
	Released     bool   // a move has released it for deletion
	Emptying     bool   // a move has started to delete its objects
	FoundPaused  bool   // paused before the move that holds it
	Touched      bool   // scute.dev/touched: a touch that a crash interrupted
	GitOps       string // the tool that manages the object, by its labels or annotations
	ManagedBy    string // cluster.x-k8s.io/managed-by: the program that replaces its provider, in quotes, or "another program"
	HostPaused   bool   // baremetalhost.metal3.io/paused
	Reserved     bool   // scute.dev/addresses-reserved, on a pool or an address
	// BoundCluster is the Cluster of a ClusterResourceSetBinding or a HelmReleaseProxy, in its
	// namespace; empty for other kinds.
	BoundCluster string
	// References are in its spec and its annotations.
	References []Reference
	Pool       *Ref // of an IPAddress, if its spec names one
	// Extensions are the runtime extension handlers that a ClusterClass names.
	Extensions []string
	// Replicas is the larger of spec and status.
	Replicas int64
	// Updating means that Cluster API updates a Machine in place.
	Updating bool
	// Consumer is the object that uses a host, such as a BareMetalHost of Metal3: its
	// spec.consumerRef.
	Consumer *Ref
	// Local means that the virtual machine of a KubevirtMachine runs in this management cluster,
	// because the object names no other cluster.
	Local bool

	Paused        ConditionStatus
	PausedMessage string
	// TopologyPaused is the status of the condition with which the topology controller acknowledges
	// the pause.
	TopologyPaused ConditionStatus

	Cluster *ClusterFacts // only of a Cluster
	Machine *MachineFacts // only of a Machine
}

// ClusterFacts are the facts that only a Cluster has.
type ClusterFacts struct {
	Paused                  bool
	ClassName               string
	ClassNamespace          string
	ControlPlane            Ref
	Upgrading               string // the remaining versions of an upgrade of Kubernetes
	InfrastructureReady     bool
	ControlPlaneInitialized bool
}

// MachineFacts are the facts that only a Machine has.
type MachineFacts struct {
	HasNode         bool
	OwnerRemediated ConditionStatus
	// MarkedForDeletion means that scute has chosen the machine for deletion by its owner.
	MarkedForDeletion bool
	// ReplacementScheduled means that scute's annotation records the decision to replace it.
	ReplacementScheduled bool
}

// Observe returns the facts about a decoded object. It never fails: an absent or malformed field
// reads as its zero value.
func Observe(u *unstructured.Unstructured) Observed {
	o := Observed{
		Ref:             RefOf(u),
		Version:         u.GroupVersionKind().Version,
		UID:             u.GetUID(),
		ResourceVersion: u.GetResourceVersion(),
		Deleting:        u.GetDeletionTimestamp() != nil,
		Finalizers:      len(u.GetFinalizers()),
	}
	for _, ref := range u.GetOwnerReferences() {
		o.Owners = append(o.Owners, owner(ref, o.Ref.Namespace))
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	o.ClusterName = labels[clusterv1.ClusterNameLabel]
	_, o.Movable = labels[MoveLabel]
	_, o.Hierarchy = labels[MoveHierarchyLabel]
	_, o.BlockMove = annotations[BlockMoveAnnotation]
	_, o.PausedByUser = annotations[PausedAnnotation]
	_, o.Remediating = annotations[controlplanev1.RemediationInProgressAnnotation]
	o.MoveID, o.MoveLogID = annotations[MoveAnnotation], annotations[LogAnnotation]
	o.PauseHolders = pauseHolders(annotations)
	_, o.Released = annotations[DeleteForMoveAnnotation]
	_, o.Emptying = annotations[EmptyingAnnotation]
	_, o.FoundPaused = annotations[FoundPausedAnnotation]
	_, o.Touched = annotations[TouchAnnotation]
	o.GitOps = gitOps(labels, annotations)
	o.ManagedBy = managedBy(annotations)
	_, o.HostPaused = annotations[HostPausedAnnotation]
	_, o.Reserved = annotations[AddressesReservedAnnotation]
	o.References = references(u, o.Ref)
	o.Consumer = referenceAt(u, o.Ref, "consumerRef")
	o.Replicas = replicas(u)

	o.Paused, _, o.PausedMessage = Condition(u, clusterv1.PausedCondition)
	if status, reason, _ := Condition(u, clusterv1.ClusterTopologyReconciledCondition); reason == clusterv1.PausedReason {
		o.TopologyPaused = True
	} else if status != Absent {
		o.TopologyPaused = False
	}
	switch o.Ref.Group + "/" + o.Ref.Kind {
	case AddonsGroup + "/ClusterResourceSetBinding":
		o.BoundCluster = cmp.Or(Text(u, "spec", "clusterName"), u.GetName()) // older ones lack the field
	case AddonsGroup + "/HelmReleaseProxy":
		if Text(u, "spec", "clusterRef", "namespace") == u.GetNamespace() {
			o.BoundCluster = Text(u, "spec", "clusterRef", "name")
		}
	case ipamGroup + "/IPAddress":
		o.Pool = referenceAt(u, o.Ref, "poolRef")
	case "infrastructure.cluster.x-k8s.io/PooledRemoteMachine":
		if name := Text(u, "status", "machineRef", "name"); name != "" {
			o.Consumer = &Ref{Group: o.Ref.Group, Kind: "RemoteMachine", Namespace: o.Ref.Namespace, Name: name}
		}
	case "infrastructure.cluster.x-k8s.io/KubevirtMachine":
		o.Local = Text(u, "spec", "providerID") != "" && !o.HasReference(InfraClusterField)
	case CoreGroup + "/Cluster":
		o.Cluster = clusterFacts(u)
	case CoreGroup + "/ClusterClass":
		o.Extensions = extensions(u)
	case CoreGroup + "/MachineSet":
		o.Updating = isUpdating(annotations)
	case CoreGroup + "/Machine":
		o.Updating = isUpdating(annotations)
		remediated, _, _ := Condition(u, clusterv1.MachineOwnerRemediatedCondition)
		o.Machine = &MachineFacts{
			HasNode: Text(u, "status", "nodeRef", "name") != "", OwnerRemediated: remediated,
			MarkedForDeletion:    annotations[clusterv1.DeleteMachineAnnotation] == OwnDeleteMachineValue,
			ReplacementScheduled: isScheduled(annotations[v1alpha1.UnhealthyAnnotation]),
		}
	}
	return o
}

func pauseHolders(annotations map[string]string) (held map[string]string) {
	for name, holder := range annotations {
		if holder != "" && (name == PauseAnnotation || strings.HasPrefix(name, PausePrefix)) {
			if held == nil {
				held = make(map[string]string)
			}
			held[name] = holder
		}
	}
	return held
}

func isScheduled(mark string) bool {
	var m v1alpha1.UnhealthyMark
	return mark != "" && json.Unmarshal([]byte(mark), &m) == nil && m.State == v1alpha1.UnhealthyScheduled
}

func gitOps(labels, annotations map[string]string) string {
	switch {
	case labels["kustomize.toolkit.fluxcd.io/name"] != "", labels["helm.toolkit.fluxcd.io/name"] != "":
		return "Flux"
	case annotations["argocd.argoproj.io/tracking-id"] != "", labels["argocd.argoproj.io/instance"] != "":
		return "Argo CD"
	default:
		return ""
	}
}

func managedBy(annotations map[string]string) string {
	by, ok := annotations[clusterv1.ManagedByAnnotation]
	switch {
	case !ok:
		return ""
	case by == "":
		return "another program"
	default:
		return strconv.Quote(by)
	}
}

func owner(ref metav1.OwnerReference, namespace string) Owner {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return Owner{
		Ref: Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: ref.Name}, Version: kind.Version, UID: ref.UID,
		Controller: ref.Controller, BlockOwnerDeletion: ref.BlockOwnerDeletion,
	}
}

// clusterFacts reads a Cluster in v1beta2, or in v1beta1 of Cluster API up to v1.10.
func clusterFacts(u *unstructured.Unstructured) *ClusterFacts {
	flag := func(path ...string) bool { v, _, _ := unstructured.NestedBool(u.Object, path...); return v }
	initialized, _, _ := Condition(u, clusterv1.ClusterControlPlaneInitializedCondition)
	// If standalone machines are the control plane, no controller sets the field.
	provided := Text(u, "spec", "controlPlaneRef", "name") == "" ||
		flag("status", "initialization", "controlPlaneInitialized") || flag("status", "controlPlaneReady")
	f := &ClusterFacts{
		Paused:                  flag("spec", "paused"),
		ClassName:               cmp.Or(Text(u, "spec", "topology", "classRef", "name"), Text(u, "spec", "topology", "class")),
		ClassNamespace:          cmp.Or(Text(u, "spec", "topology", "classRef", "namespace"), Text(u, "spec", "topology", "classNamespace")),
		InfrastructureReady:     flag("status", "initialization", "infrastructureProvisioned") || flag("status", "infrastructureReady"),
		ControlPlaneInitialized: initialized == True && provided,
		Upgrading:               pendingVersions(u),
	}
	if f.ClassName != "" && f.ClassNamespace == "" {
		f.ClassNamespace = u.GetNamespace()
	}
	if of := referenceAt(u, Ref{Namespace: u.GetNamespace()}, "controlPlaneRef"); of != nil {
		f.ControlPlane = *of
	}
	return f
}

// Condition returns a condition of either contract. It reads status.v1beta2.conditions first, where
// objects of the contract v1beta1 have the new conditions, then status.conditions.
func Condition(u *unstructured.Unstructured, conditionType string) (status ConditionStatus, reason, message string) {
	c := condition(u, conditionType)
	s, _ := c["status"].(string)
	reason, _ = c["reason"].(string)
	message, _ = c["message"].(string)
	return ConditionStatus(s), reason, message
}

func condition(u *unstructured.Unstructured, conditionType string) map[string]any {
	for _, path := range [][]string{{"status", "v1beta2", "conditions"}, {"status", "conditions"}} {
		list, _, _ := unstructured.NestedSlice(u.Object, path...)
		for _, c := range list {
			if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
				return c
			}
		}
	}
	return nil
}

// StripServerFields deletes the fields that only the server writes.
func StripServerFields(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
}
