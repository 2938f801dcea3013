package object

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/api/v1alpha1"
)

// Names of Cluster API that decisions look at.
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
	// HostPausedAnnotation stops the controller of a Metal3 BareMetalHost. Metal3's provider sets it, together with a copy
	// of the host's status, when it takes note of a pause of the Metal3Machine that uses the host.
	HostPausedAnnotation = "baremetalhost.metal3.io/paused"
)

// OwnGroup is the API group of scute's own kinds. None of them moves.
const OwnGroup = "scute.dev"

// Annotations of scute's own. None of them travels with a move.
const (
	OwnPrefix = OwnGroup + "/"
	// MoveAnnotation holds the id of the move that holds a root at the source, or made a copy on the target.
	MoveAnnotation = OwnPrefix + "move"
	// LogAnnotation accompanies MoveAnnotation and has the ID of the event log that the move is in: the same move in
	// another log is not the same move.
	LogAnnotation = OwnPrefix + "log"
	// OriginAnnotation is on a copy, and holds the UID of what it was copied from if the move is to delete that.
	OriginAnnotation = OwnPrefix + "origin"
	// FoundAnnotation is on a root that had been paused before the move, and on its copy.
	FoundAnnotation = OwnPrefix + "found-paused"
	// EmptyingAnnotation holds the id of the move that has begun to delete what belongs to a root at the source: from then
	// on the root may not be unpaused.
	EmptyingAnnotation = OwnPrefix + "emptying"
	// PauseAnnotation holds the id of a pause that is not a move's: of a task of a run.
	PauseAnnotation = OwnPrefix + "pause"
	// PausePrefix begins the annotations of the Pauses that hold a root: the UID of the Pause follows, and the value is its
	// namespace and name. A root can have several.
	PausePrefix = OwnPrefix + "pause."
	// BeforeAnnotation is on a root that Pauses, or a task of a run, hold: "true" or "false", as the root was paused before the
	// first of them. The last of them restores it.
	BeforeAnnotation = OwnPrefix + "paused-before"
	// TouchAnnotation is set and taken off again to wake a controller.
	TouchAnnotation = OwnPrefix + "touched"
	// NeededAnnotation on a Machine says why etcd cannot spare it. The chart's ValidatingAdmissionPolicy refuses that people delete it.
	NeededAnnotation = OwnPrefix + "needed"
	// CarriedAnnotation on a SurgeRemediation says that the hold and the abort that earlier ones of its Machine said have been written
	// on it: what it does not say was taken off.
	CarriedAnnotation = OwnPrefix + "carried"
	// AcknowledgeTimeoutAnnotation on a CustomResourceDefinition is how long objects of the kind have to acknowledge a pause, unless the
	// Move or the Pause has a time for the kind.
	AcknowledgeTimeoutAnnotation = OwnPrefix + "acknowledge-timeout"
	// ReservedAnnotation on an address pool or an IPAddress is a user's statement that no pool can assign the addresses of moved clusters
	// again.
	ReservedAnnotation = OwnPrefix + "addresses-reserved"
)

// InfraClusterField names the kubeconfig of the cluster that the virtual machines of KubeVirt run in.
const InfraClusterField = "spec.infraClusterSecretRef"

// OwnDeleteMark is the value by which scute knows its own annotations cluster.x-k8s.io/delete-machine.
const OwnDeleteMark = OwnGroup

// Truth is a condition's status, or Absent when the object has no such condition.
type Truth string

// The values of a Truth.
const (
	Absent  Truth = ""
	True    Truth = "True"
	False   Truth = "False"
	Unknown Truth = "Unknown"
)

// Owner is one owner reference, with what is needed to build it again on another cluster.
type Owner struct {
	Ref                Ref       `json:"ref"`
	Version            string    `json:"version"`
	UID                types.UID `json:"uid,omitempty"`
	Controller         *bool     `json:"controller,omitempty"`
	BlockOwnerDeletion *bool     `json:"blockOwnerDeletion,omitempty"`
}

// Observed holds the facts about one object at one moment that decisions need, and nothing of its content.
type Observed struct {
	Ref             Ref
	Version         string
	UID             types.UID
	ResourceVersion string
	Owners          []Owner
	ClusterName     string // from the label
	Deleting        bool
	Finalizers      int
	Movable         bool // labelled to be moved by itself
	Hierarchy       bool // labelled to be moved with all below it
	BlockMove       bool
	KindBlocksMove  bool // the annotation block-move is on its CustomResourceDefinition
	PausedByUser    bool // the paused annotation
	Remediating     bool
	Mark            string // scute.dev/move: the move that works on it
	MarkLog         string // scute.dev/log: the event log of that move; empty for one that an older version began
	// Holds are the annotations of the Pauses and of the task of a run that hold its pause.
	Holds       map[string]string
	Released    bool   // a move has released it to be deleted
	Emptying    bool   // a move has begun to delete what belongs to it
	FoundPaused bool   // it had been paused before the move that holds it
	Touched     bool   // scute.dev/touched: a touch that a death cut in two
	GitOps      string // the tool that says it manages the object, if any
	ManagedBy   string // cluster.x-k8s.io/managed-by: what manages it in place of its provider, in quotes or "another program"
	HostPaused  bool   // baremetalhost.metal3.io/paused
	Reserved    bool   // scute.dev/addresses-reserved, on a pool or an address
	// Binds is the Cluster of its namespace that a ClusterResourceSetBinding or a HelmReleaseProxy is about; empty for every other kind.
	Binds string
	// References of its spec and of its annotations to other objects.
	References []Reference
	Pool       *Ref // that an IPAddress is of, if its spec says so
	// Extensions are the handlers of runtime extensions that a ClusterClass names.
	Extensions []string
	// Replicas that the spec or the status counts, whichever are more.
	Replicas int64
	// Updating says that Cluster API updates a Machine in place.
	Updating bool
	// Consumer is what uses a host, such as a BareMetalHost of Metal3: its spec.consumerRef.
	Consumer *Ref
	// Local says that the virtual machine of a KubevirtMachine is in this management cluster: the object names no other cluster.
	Local bool

	Paused        Truth
	PausedMessage string
	// TopologyPaused: the topology controller said that it is paused.
	TopologyPaused Truth

	Cluster *ClusterFacts // only for a Cluster
	Machine *MachineFacts // only for a Machine
}

// ClusterFacts are what only a Cluster has.
type ClusterFacts struct {
	Paused                  bool
	ClassName               string
	ClassNamespace          string
	ControlPlane            Ref
	Upgrading               string // the versions of a Kubernetes upgrade that has not ended
	InfrastructureReady     bool
	ControlPlaneInitialized bool
}

// MachineFacts are what only a Machine has.
type MachineFacts struct {
	HasNode         bool
	OwnerRemediated Truth
	// DeleteMark: scute has chosen it to be deleted by its owner.
	DeleteMark bool
	// Scheduled: scute's mark says that its replacement was decided.
	Scheduled bool
}

// Observe reads the facts from a decoded object. It never fails: what is absent or misshapen reads as its zero value.
func Observe(u *unstructured.Unstructured) Observed {
	gvk := u.GroupVersionKind()
	o := Observed{
		Ref:             Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()},
		Version:         gvk.Version,
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
	o.Mark, o.MarkLog = annotations[MoveAnnotation], annotations[LogAnnotation]
	o.Holds = holds(annotations)
	_, o.Released = annotations[DeleteForMoveAnnotation]
	_, o.Emptying = annotations[EmptyingAnnotation]
	_, o.FoundPaused = annotations[FoundAnnotation]
	_, o.Touched = annotations[TouchAnnotation]
	o.GitOps = gitOps(labels, annotations)
	o.ManagedBy = managedBy(annotations)
	_, o.HostPaused = annotations[HostPausedAnnotation]
	_, o.Reserved = annotations[ReservedAnnotation]
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
		o.Binds = binds(u)
	case AddonsGroup + "/HelmReleaseProxy":
		if namespace, _, _ := unstructured.NestedString(u.Object, "spec", "clusterRef", "namespace"); namespace == u.GetNamespace() {
			o.Binds, _, _ = unstructured.NestedString(u.Object, "spec", "clusterRef", "name")
		}
	case ipamGroup + "/IPAddress":
		o.Pool = referenceAt(u, o.Ref, "poolRef")
	case "infrastructure.cluster.x-k8s.io/PooledRemoteMachine":
		if name, _, _ := unstructured.NestedString(u.Object, "status", "machineRef", "name"); name != "" {
			o.Consumer = &Ref{Group: o.Ref.Group, Kind: "RemoteMachine", Namespace: o.Ref.Namespace, Name: name}
		}
	case "infrastructure.cluster.x-k8s.io/KubevirtMachine":
		made, _, _ := unstructured.NestedString(u.Object, "spec", "providerID")
		o.Local = made != "" && !o.Names(InfraClusterField)
	case CoreGroup + "/Cluster":
		o.Cluster = clusterFacts(u)
	case CoreGroup + "/ClusterClass":
		o.Extensions = extensions(u)
	case CoreGroup + "/MachineSet":
		o.Updating = updating(annotations)
	case CoreGroup + "/Machine":
		o.Updating = updating(annotations)
		remediated, _, _ := Condition(u, clusterv1.MachineOwnerRemediatedCondition)
		node, _, _ := unstructured.NestedString(u.Object, "status", "nodeRef", "name")
		o.Machine = &MachineFacts{
			HasNode: node != "", OwnerRemediated: remediated,
			DeleteMark: annotations[clusterv1.DeleteMachineAnnotation] == OwnDeleteMark, Scheduled: scheduled(annotations[v1alpha1.UnhealthyAnnotation]),
		}
	}
	return o
}

func holds(annotations map[string]string) (held map[string]string) {
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

// binds is the Cluster of a binding. Before spec.clusterName existed a binding had the name of its Cluster.
func binds(u *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName")
	return cmp.Or(name, u.GetName())
}

func scheduled(mark string) bool {
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
	group, version, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group, version = "", ref.APIVersion
	}
	return Owner{
		Ref: Ref{Group: group, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}, Version: version, UID: ref.UID,
		Controller: ref.Controller, BlockOwnerDeletion: ref.BlockOwnerDeletion,
	}
}

// clusterFacts reads a Cluster in its version v1beta2, and in v1beta1 of Cluster API up to 1.10.
func clusterFacts(u *unstructured.Unstructured) *ClusterFacts {
	text := func(path ...string) string { v, _, _ := unstructured.NestedString(u.Object, path...); return v }
	flag := func(path ...string) bool { v, _, _ := unstructured.NestedBool(u.Object, path...); return v }
	initialized, _, _ := Condition(u, clusterv1.ClusterControlPlaneInitializedCondition)
	// A Cluster whose machines make up its control plane has nobody who would set the field.
	provided := text("spec", "controlPlaneRef", "name") == "" ||
		flag("status", "initialization", "controlPlaneInitialized") || flag("status", "controlPlaneReady")
	f := &ClusterFacts{
		Paused:                  flag("spec", "paused"),
		ClassName:               cmp.Or(text("spec", "topology", "classRef", "name"), text("spec", "topology", "class")),
		ClassNamespace:          cmp.Or(text("spec", "topology", "classRef", "namespace"), text("spec", "topology", "classNamespace")),
		InfrastructureReady:     flag("status", "initialization", "infrastructureProvisioned") || flag("status", "infrastructureReady"),
		ControlPlaneInitialized: initialized == True && provided,
	}
	if f.ClassName != "" && f.ClassNamespace == "" {
		f.ClassNamespace = u.GetNamespace()
	}
	controlPlane, _, _ := unstructured.NestedMap(u.Object, "spec", "controlPlaneRef")
	if of := reference(controlPlane, Ref{Namespace: u.GetNamespace()}); of.Group != "" && of.Kind != "" && of.Name != "" {
		f.ControlPlane = of
	}
	f.Upgrading = upgrading(u)
	return f
}

// Condition reads a condition of an object of either Cluster API contract: status.conditions, and
// status.v1beta2.conditions where an older contract keeps the new ones.
func Condition(u *unstructured.Unstructured, conditionType string) (status Truth, reason, message string) {
	c := condition(u, conditionType)
	s, _ := c["status"].(string)
	reason, _ = c["reason"].(string)
	message, _ = c["message"].(string)
	return Truth(s), reason, message
}

// condition is nil if the object has no such condition.
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
