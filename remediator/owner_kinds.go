package remediator

import "strings"

// OwnerKind is a kind of owner that scute knows how to ask for a replacement.
type OwnerKind string

// The kinds. Machines of any other owner are only marked.
const (
	ControlPlane OwnerKind = "KubeadmControlPlane"
	Deployment   OwnerKind = "MachineDeployment"
	Set          OwnerKind = "MachineSet"
)

// profile is what the rules know of a kind of owner.
type profile struct {
	// controlPlane: its machines report their components as those of a KubeadmControlPlane, and are the members of etcd, or use an
	// external one.
	controlPlane bool
	// nodeless: its machines never get a Node.
	nodeless bool
	// why scute cannot ask it for a replacement, "" for one that it can; next is what helps.
	why, next string
}

// profileOf an owner's kind, which has its group behind it where another kind of that name is known.
func profileOf(kind string) profile {
	switch OwnerKind(kind) {
	case ControlPlane:
		return profile{controlPlane: true}
	case Deployment, Set:
		return profile{}
	}
	const asks = "scute cannot ask the etcd on its machines, and so does not know whether quorum is kept without one"
	switch name, _, _ := strings.Cut(kind, "."); name {
	case "RKE2ControlPlane": // from v0.15; updateManagedEtcdConditions calls each member well whose Node exists, up to v0.25
		return profile{
			why:  asks + "; its own remediation counts Nodes, and not the members of etcd that answer",
			next: "see that etcd keeps its quorum without the machine, and delete it by hand (kubectl delete machine): the RKE2ControlPlane removes its member and makes another",
		}
	case "KThreesControlPlane": // from v0.2; updateManagedEtcdConditions asks each member
		return profile{
			why:  asks,
			next: "have a MachineHealthCheck without a templateRef select the machine: the KThreesControlPlane then asks its etcd, deletes the machine and makes another; or replace it by hand",
		}
	case "TalosControlPlane":
		return profile{why: asks, next: "see that etcd keeps its quorum without the machine, and replace it by hand"}
	case "EtcdadmCluster": // etcd alone, without a kubelet
		return profile{nodeless: true, why: asks, next: "see that etcd keeps its quorum without the machine, and replace it by hand"}
	case "MachinePool":
		return profile{
			why:  "a MachinePool remediates no machine in answer to a condition",
			next: "delete the machine by hand (kubectl delete machine): the infrastructure provider of the pool makes another",
		}
	default:
		return profile{why: "scute does not know how to ask it for a replacement", next: "replace the machine by hand"}
	}
}

// IsControlPlane says that the machines of the kind are those of a control plane, as far as the rules know one.
func (k OwnerKind) IsControlPlane() bool { return profileOf(string(k)).controlPlane }

// HasNodes reports whether machines of the kind get Nodes. One that never does is unhealthy by conditions of the Machine alone.
func (k OwnerKind) HasNodes() bool { return !profileOf(string(k)).nodeless }

// unknownOwner only marks a machine whose owner cannot be asked; nil for one that can.
func unknownOwner(m *Machine, f *Facts) *Decision {
	p := profileOf(f.Owner.Kind)
	switch {
	case p.why == "":
		return nil
	case m.Unwired != "":
		return ask("see what that MachineHealthCheck says", ruleHealthCheck, "MachineHealthCheck %s is to remediate the machine; scute cannot ask a %s", m.Unwired, f.Owner.Kind)
	default:
		return &Decision{Verdict: CannotRemediate, Rule: "unknown-owner", Reason: "machines of a " + f.Owner.Kind + " are only marked: " + p.why, Next: p.next}
	}
}
