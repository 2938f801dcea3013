package settled

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"

	"scute.dev/kube/object"
)

const (
	clusterKind    = "Cluster"
	deploymentKind = "MachineDeployment"
	setKind        = "MachineSet"
	poolKind       = "MachinePool"
	machineKind    = "Machine"
)

// Supports reports whether State.Problems supports a kind: Cluster API's core kinds that have
// machines, and all control planes in the API group of Cluster API's own control plane provider.
// Other control planes are checked with their Cluster.
func Supports(kind schema.GroupKind) bool {
	switch kind.Group {
	case clusterv1.GroupVersion.Group:
		return kind.Kind == clusterKind || kind.Kind == deploymentKind || kind.Kind == setKind || kind.Kind == poolKind
	case controlplanev1.GroupVersion.Group:
		return !strings.HasSuffix(kind.Kind, clusterv1.TemplateSuffix)
	default:
		return false
	}
}

// State contains an object and the objects that belong to it, as read at one time.
type State struct {
	// Object is nil if it does not exist.
	Object *unstructured.Unstructured
	// ControlPlane is the control plane of a Cluster; nil if there is none.
	ControlPlane *unstructured.Unstructured
	// Members are the MachineDeployments, MachineSets, MachinePools and Machines of the cluster.
	Members []*unstructured.Unstructured
}

// Problems returns the reasons why the object is not settled.
func (s State) Problems() []string {
	switch {
	case s.Object == nil:
		return []string{"it does not exist"}
	case s.Object.GetDeletionTimestamp() != nil:
		return []string{name(s.Object) + " is being deleted"}
	case s.Object.GetKind() == clusterKind && s.Object.GroupVersionKind().Group == clusterv1.GroupVersion.Group:
		return s.checkCluster()
	default:
		return s.checkOwner(s.Object, "")
	}
}

func (s State) checkCluster() []string {
	why := statusProblems(s.Object, clusterv1.ClusterAvailableCondition)
	version := object.Text(s.Object, "spec", "topology", "version")
	if version != "" {
		why = append(why, object.UntrueConditions(s.Object, clusterv1.ClusterTopologyReconciledCondition)...)
	}
	if ref := object.Text(s.Object, "spec", "controlPlaneRef", "name"); s.ControlPlane != nil {
		why = append(why, s.checkOwner(s.ControlPlane, version)...)
	} else if ref != "" || version != "" {
		why = append(why, strings.TrimSpace(name(s.Object)+" has no control plane yet "+ref))
	}
	for _, u := range s.Members {
		switch {
		case u.GetDeletionTimestamp() != nil:
			why = append(why, name(u)+" is being deleted")
		case u.GetKind() == machineKind, u.GetKind() == setKind && controller(u, deploymentKind) != "":
			// Its owner is checked.
		case labels.IsTopologyOwned(u):
			why = append(why, s.checkOwner(u, version)...)
		default:
			why = append(why, s.checkOwner(u, "")...)
		}
	}
	return unique(why)
}

// checkOwner returns the problems of a control plane, MachineDeployment, MachineSet or MachinePool.
// version is the version that its Cluster requires, or "" if only the spec of the object itself
// counts.
func (s State) checkOwner(u *unstructured.Unstructured, version string) []string {
	why := statusProblems(u, clusterv1.AvailableCondition)
	for _, t := range []string{clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition} {
		if t == clusterv1.RollingOutCondition && u.GetKind() == deploymentKind {
			// Its MachineSets and Machines are checked instead. The condition is computed from all
			// machines that the selector matches. If that is too wide, it stays True until the next
			// resync.
			continue
		}
		if status, _, message := object.Condition(u, t); status == object.True {
			why = append(why, fmt.Sprintf("%s: %s: %s", name(u), t, strings.Join(strings.Fields(message), " ")))
		}
	}
	own := desiredVersion(u)
	if version != "" && own != version {
		why = append(why, fmt.Sprintf("%s: its spec still has version %s, the Cluster wants %s", name(u), own, version))
	}
	machines := s.machines(u)
	why = append(why, compareReplicas(u, len(machines))...)
	if u.GetKind() != setKind { // a MachineSet keeps its machines when its template changes
		why = append(why, outdatedVersions(u, own, machines)...)
	}
	if u.GetKind() == deploymentKind {
		why = append(why, s.checkMachineSets(u)...)
	}
	for _, m := range machines {
		if m.GetDeletionTimestamp() != nil {
			why = append(why, name(m)+" is being deleted")
		}
	}
	return why
}

// statusProblems returns why a status cannot be trusted or shows a problem: it is older than the
// spec, the object is paused, or its condition Available is not True.
func statusProblems(u *unstructured.Unstructured, available string) []string {
	var why []string
	if lag := object.StatusLag(u); lag != "" {
		why = append(why, name(u)+": "+lag)
	}
	if paused, _, _ := object.Condition(u, clusterv1.PausedCondition); paused == object.True {
		why = append(why, name(u)+" is paused")
	}
	if status, _, _ := object.Condition(u, available); status != object.Absent || u.GetKind() == clusterKind {
		why = append(why, object.UntrueConditions(u, available)...)
	}
	return why
}

// checkMachineSets returns the problems of a MachineDeployment's MachineSets, because the status of
// the MachineDeployment is updated later. At most one MachineSet may have machines, and it must
// have the MachineDeployment's template.
func (s State) checkMachineSets(deployment *unstructured.Unstructured) []string {
	var why []string
	active := 0
	for _, set := range s.ownedBy(deployment, setKind) {
		machines, desired := len(s.machines(set)), number(set, "spec", "replicas")
		if machines == 0 && (desired == nil || *desired == 0) {
			continue
		}
		if active++; !sameTemplate(set, deployment) {
			why = append(why, fmt.Sprintf("%s has an older template and %d machines", name(set), machines))
			continue
		}
		if lag := object.StatusLag(set); lag != "" {
			why = append(why, name(set)+": "+lag)
		}
		why = append(why, compareReplicas(set, machines)...)
	}
	desired := number(deployment, "spec", "replicas")
	switch {
	case active > 1:
		why = append(why, fmt.Sprintf("%s: %d MachineSets have machines", name(deployment), active))
	case active == 0 && desired != nil && *desired > 0:
		why = append(why, name(deployment)+": no MachineSet has machines yet")
	}
	return why
}

func (s State) ownedBy(by *unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(s.Members), func(u *unstructured.Unstructured) bool {
		return u.GetKind() != kind || controller(u, by.GetKind()) != by.GetUID()
	})
}

// machines returns the machines of an object. For a MachineDeployment, it returns the machines of
// its MachineSets.
func (s State) machines(of *unstructured.Unstructured) []*unstructured.Unstructured {
	if of.GetKind() != deploymentKind {
		return s.ownedBy(of, machineKind)
	}
	var list []*unstructured.Unstructured
	for _, set := range s.ownedBy(of, setKind) {
		list = append(list, s.ownedBy(set, machineKind)...)
	}
	return list
}
