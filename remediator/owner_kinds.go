package remediator

import "strings"

// OwnerKind is a kind of owner from which scute can request a replacement.
type OwnerKind string

// Kinds of owners from which scute can request a replacement. See profileOf for the others.
const (
	ControlPlane OwnerKind = "KubeadmControlPlane"
	Deployment   OwnerKind = "MachineDeployment"
	Set          OwnerKind = "MachineSet"
)

// profile contains the properties of a kind of owner that the rules use.
type profile struct {
	// controlPlane means that machines of the kind have the same component conditions as machines
	// of a KubeadmControlPlane, and that they run the members of etcd or use an external etcd.
	controlPlane bool
	// nodeless means that machines of the kind never get a Node.
	nodeless bool
	// why is the reason why scute cannot request a replacement from the kind, or "" if it can. next
	// is what users can do instead.
	why, next string
}

// profileOf returns the profile of a kind. The kind includes the group ("Kind.group") if scute
// knows another kind with the same name.
func profileOf(kind string) profile {
	switch OwnerKind(kind) {
	case ControlPlane:
		return profile{controlPlane: true}
	case Deployment, Set:
		return profile{}
	}
	const asks, byHand = "scute cannot ask etcd on its machines, so it does not know whether quorum is kept without one", "check that etcd keeps its quorum without the machine, then replace it by hand"
	switch name, _, _ := strings.Cut(kind, "."); {
	case name == "KThreesControlPlane": // from v0.2; updateManagedEtcdConditions queries each member
		return profile{why: asks, next: "create a MachineHealthCheck without a templateRef that selects the machine; or replace it by hand"}
	case name == "EtcdadmCluster": // only etcd, without a kubelet
		return profile{nodeless: true, why: asks, next: byHand}
	case strings.HasSuffix(name, "ControlPlane"):
		return profile{why: asks, next: byHand + " (kubectl delete machine)"}
	default:
		return profile{why: "scute does not know how to ask it for a replacement", next: "replace the machine by hand (kubectl delete machine)"}
	}
}

// IsControlPlane reports whether the rules treat machines of the kind as control plane machines.
func (k OwnerKind) IsControlPlane() bool { return profileOf(string(k)).controlPlane }

// HasNodes reports whether machines of the kind get Nodes. If they do not, only conditions of a
// Machine can make it unhealthy.
func (k OwnerKind) HasNodes() bool { return !profileOf(string(k)).nodeless }

// checkOwnerKind returns the decision to only mark a machine, or nil if scute can request a replacement from its owner.
func checkOwnerKind(m *Machine, f *Facts) *Decision {
	p := profileOf(f.Owner.Kind)
	switch {
	case p.why == "":
		return nil
	case m.OtherHealthCheck != "":
		return waitForHuman("check the status of the MachineHealthCheck", ruleHealthCheck, "MachineHealthCheck %s remediates the machine; scute cannot ask a %s to", m.OtherHealthCheck, f.Owner.Kind)
	default:
		return &Decision{Verdict: CannotRemediate, Rule: "unknown-owner", Reason: "scute only marks machines of a " + f.Owner.Kind + ": " + p.why, Next: p.next}
	}
}
