package remediator

import "strings"

// stranger is an owner of a kind that scute cannot ask.
type stranger struct{ why, next string }

// strangers are kinds of which it is known why, and what helps.
func strangers(kind string) stranger {
	name, _, _ := strings.Cut(kind, ".")
	asks := stranger{
		why:  "scute cannot ask the etcd on its machines, and so does not know whether quorum is kept without one",
		next: "have a MachineHealthCheck without a templateRef select the machine: the " + name + " then asks its etcd, deletes the machine and makes another; or replace it by hand",
	}
	switch name {
	case "RKE2ControlPlane", "KThreesControlPlane":
		return asks
	case "TalosControlPlane":
		asks.next = "see that etcd keeps its quorum without the machine, and replace it by hand"
		return asks
	case "MachinePool":
		return stranger{
			why:  "a MachinePool remediates no machine in answer to a condition",
			next: "delete the machine by hand (kubectl delete machine): the infrastructure provider of the pool makes another",
		}
	default:
		return stranger{why: "scute does not know how to ask it for a replacement", next: "replace the machine by hand"}
	}
}

// unknownOwner: a machine is only marked.
func unknownOwner(m *Machine, f *Facts) *Decision {
	if m.Unwired != "" {
		return ask("see what that MachineHealthCheck says", "health-check", "MachineHealthCheck %s is to remediate the machine; scute cannot ask a %s", m.Unwired, f.Owner.Kind)
	}
	s := strangers(f.Owner.Kind)
	return &Decision{Verdict: CannotRemediate, Rule: "unknown-owner", Reason: "machines of a " + f.Owner.Kind + " are only marked: " + s.why, Next: s.next}
}
