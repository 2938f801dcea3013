package remediator

import (
	"fmt"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// decideWorker returns the decision about a worker. A surge raises the replicas by one, waits until
// the new machine is ready, sets the victim's delete annotation, and restores the replicas. It is
// only chosen if the owner then deletes the victim, and no other machine:
//
//	all machines are in the current MachineSet      a surge: the marked machine is deleted
//	a rollout, and the victim is up to date         OwnerRemediation: a MachineSet remediates during the rollout
//	OnDelete, and the MachineSet of the victim is
//	  the oldest, which a scale-down shrinks        a surge
//	  the current, while an older one has machines  OwnerRemediation
//	  neither                                       nothing: it is neither scaled down nor remediated
func decideWorker(m *Machine, f *Facts) Decision {
	gives := f.Owner.RollingOut == "" && (len(f.Owner.Sets) == 0 || f.shrinkingSet() == m.Set)
	remediates := f.inCurrentSet(m)
	switch {
	case !gives && !remediates:
		return *cannotRemediate("delete the machine by hand (kubectl delete machine): "+f.Owner.Name+" creates another", "older-machine-set",
			"MachineSet %s is not the current one of %s, so it remediates no machine; with fewer replicas, the oldest, %s, would lose one", m.Set, f.Owner.Name, f.shrinkingSet())
	case gives && f.Policy.allows(v1alpha1.MethodSurge):
		if d := f.checkOtherAnnotations(m); d != nil {
			return *d
		}
		// A user scaled the owner down and its controller has not acted yet. If a surge began now,
		// the controller could delete the victim to scale down, and a healthy machine when the
		// surge ends.
		if n, wanted := f.remainingMachines(), f.desiredReplicas(); n > int(wanted) {
			return *waitForHuman(fmt.Sprintf("if this lasts, find out why %s does not act: check the conditions of %s %s", f.Owner.Name, f.Owner.Kind, f.Owner.Name),
				ruleScaling, "%s has %s instead of %d, and deletes some first", f.Owner.Name, view.Count(n, "machine"), wanted)
		}
		if other := f.firstDeleting(); other != nil && (!remediates || f.Owner.OnDelete) { // a rollout may begin before it is gone
			// The current MachineSet replaces the deleted machine. After a surge, the owner would
			// delete machines of the victim's MachineSet.
			return *waitForDeletion(other)
		}
		return Decision{Verdict: Surge, Rule: "worker", Reason: "one more worker first; then " + f.Owner.Name + " deletes this one"}
	case remediates && f.Policy.allows(v1alpha1.MethodOwnerRemediation):
		why := "the policy allows no surge"
		switch {
		case f.Owner.RollingOut != "":
			why = "a rollout is in progress, and this machine is up to date"
		case !gives:
			why = "after a surge, it would delete a machine of another MachineSet"
		}
		return Decision{Verdict: OwnerRemediation, Rule: "worker", Reason: why + ": " + f.Owner.Name + " deletes it first"}
	default:
		return noMethod("a worker needs Surge (only if all machines are in one MachineSet) or OwnerRemediation (only in the current MachineSet)")
	}
}

// inCurrentSet reports whether the machine is in the current MachineSet, the only one whose
// machines a MachineDeployment keeps and remediates.
func (f *Facts) inCurrentSet(m *Machine) bool {
	return len(f.Owner.Sets) == 0 || m.Set == f.Owner.Sets[len(f.Owner.Sets)-1]
}

// leftByUpdate reports whether a worker never joined, so that an in-place update moves the other
// machines of its MachineSet but not the worker, and the policy allows OwnerRemediation. When asked
// to remediate such a worker, its owner deletes it (startMoveMachines in Cluster API's MachineSet).
func (f *Facts) leftByUpdate(m *Machine) bool {
	return m.Node == "" && slices.Contains(f.Owner.Moving, m.Set) && f.Policy.allows(v1alpha1.MethodOwnerRemediation)
}

func (f *Facts) firstDeleting() *Machine {
	return find(f.Machines, func(m *Machine) bool { return m.Deleting })
}

// shrinkingSet returns the name of the MachineSet that loses a machine at a scale-down: the oldest
// one that has machines.
func (f *Facts) shrinkingSet() string {
	for _, set := range f.Owner.Sets {
		if slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Set == set }) {
			return set
		}
	}
	return ""
}

func noMethod(why string) Decision {
	return Decision{Verdict: CannotRemediate, Rule: "methods", Reason: "the policy allows no method that helps here: " + why, Next: "allow it in spec.methods of the policy, or replace the machine by hand"}
}
