package remediator_test

import (
	"cmp"
	"slices"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// actWorkers performs one reconcile of a MachineDeployment and its MachineSets, one for each template, or of a
// MachineSet without a MachineDeployment. A machine that is being deleted counts until it is gone
// (machineset_controller.go, getAndAdoptMachinesForMachineSet and syncReplicas).
func (w *world) actWorkers() (string, *machine) {
	if did, deleted := w.remediateWorkers(); did != "" {
		return did, deleted
	}
	wanted, n := int(w.owner.Replicas), len(w.machines)
	old, current := w.sets()
	switch {
	case len(old) == 0 && n < wanted, w.onDelete && n < wanted:
		return w.createWorker(), nil
	case len(old) == 0:
		return w.deleteFrom(slices.Clone(w.machines), n-wanted)
	case w.onDelete:
		// machinedeployment_rollout_ondelete.go, reconcileOldMachineSetsOnDelete: the oldest MachineSet scales in, even
		// if a machine of a newer one has the delete annotation.
		return w.deleteFrom(w.oldest(old), n-wanted)
	default:
		return w.roll(old, current)
	}
}

// createWorker creates a worker, unless the creation is refused.
func (w *world) createWorker() string {
	if w.owner.Refused != "" {
		return ""
	}
	return "makes " + w.provision("").Name
}

// sets returns the machines of older MachineSets and those of the current one. A MachineSet without a MachineDeployment
// has all its machines, whatever template they were cloned from.
func (w *world) sets() (old, current []*machine) {
	for _, m := range slices.Clone(w.machines) {
		if m.Template == w.target || w.owner.Kind == string(remediator.Set) {
			current = append(current, m)
		} else {
			old = append(old, m)
		}
	}
	return old, current
}

// oldest returns the machines of the oldest MachineSet that has any. Templates sort by age.
func (w *world) oldest(old []*machine) []*machine {
	first := slices.MinFunc(old, func(a, b *machine) int { return cmp.Compare(a.Template, b.Template) }).Template
	return slices.DeleteFunc(slices.Clone(old), func(m *machine) bool { return m.Template != first })
}

// tooMany returns how many machines the owner still has to delete after users scaled down. With OnDelete, a machine
// that a newer MachineSet is deleting does not count: that MachineSet replaces it, and the oldest one scales in.
func (w *world) tooMany(wanted int32) int {
	all := w.machines
	leaving := deleting(all)
	if w.onDelete && w.owner.Kind == string(remediator.Deployment) {
		if old, _ := w.sets(); len(old) > 0 {
			all, leaving = slices.Clone(w.machines), deleting(w.oldest(old))
		}
	}
	return max(0, len(all)-leaving-int(wanted))
}

// roll follows planRollingUpdate (machinedeployment_rollout_rollingupdate.go), with maxSurge 1 and maxUnavailable 0, or
// vice versa. The last case is reconcileDeadlockBreaker.
func (w *world) roll(old, current []*machine) (string, *machine) {
	wanted, n := int(w.owner.Replicas), len(w.machines)
	surge, away := int(w.owner.MaxSurge), 1-min(1, int(w.owner.MaxSurge))
	unavailable := func(m *machine) bool { return !w.available(m) }
	starting, leaving := 0, 0
	for _, m := range slices.Clone(w.machines) {
		switch {
		case m.Deleting:
			leaving++
		case unavailable(m) && slices.Contains(current, m):
			starting++
		}
	}
	switch {
	case len(current) < wanted && n < wanted+surge:
		return w.createWorker(), nil
	case len(current) > wanted:
		return w.deleteFrom(current, len(current)-wanted)
	case n-leaving-starting > wanted-away:
		from := w.oldest(old)
		return w.deleteFrom(from, 1+deleting(from))
	case leaving == 0 && starting == 0:
		if i := slices.IndexFunc(old, unavailable); i >= 0 {
			return w.delete(old[i]), old[i]
		}
	}
	return "", nil
}

func deleting(in []*machine) (n int) {
	for _, m := range in {
		if m.Deleting {
			n++
		}
	}
	return n
}

func (w *world) available(m *machine) bool {
	return !m.Deleting && m.Node != "" && w.conditionIs(m, "NodeReady", object.True)
}

// deleteFrom deletes the first machine of a MachineSet with too many machines, following machineset_deletion_order.go.
// Of equal machines, the oldest is deleted first.
func (w *world) deleteFrom(set []*machine, tooMany int) (string, *machine) {
	if tooMany <= 0 {
		return "", nil
	}
	priority := func(m *machine) int {
		switch {
		case m.Deleting:
			return 0
		case m.DeleteAnnotation != "":
			return 1
		case m.Updating:
			return 2
		case m.Node == "", w.conditionIs(m, "NodeReady", object.False), w.conditionIs(m, "HealthCheckSucceeded", object.False):
			return 3
		}
		return 4
	}
	sorted := slices.SortedStableFunc(slices.Values(set), func(a, b *machine) int {
		return cmp.Or(cmp.Compare(priority(a), priority(b)), a.Created.Compare(b.Created))
	})
	for _, m := range sorted[:min(tooMany, len(sorted))] {
		if !m.Deleting {
			return w.delete(m), m
		}
	}
	return "", nil
}

// remediateWorkers follows reconcileUnhealthyMachines (machineset_controller.go): it remediates the newest machine
// first, and only machines of the current MachineSet of a MachineDeployment.
func (w *world) remediateWorkers() (string, *machine) {
	var victim *machine
	_, current := w.sets()
	for _, m := range w.machines {
		if w.conditionIs(m, "HealthCheckSucceeded", object.True) && w.conditionIs(m, "OwnerRemediated", object.False) {
			m.removeCondition("OwnerRemediated")
		}
		if !m.Deleting && w.conditionIs(m, "HealthCheckSucceeded", object.False) && w.conditionIs(m, "OwnerRemediated", object.False) && slices.Contains(current, m) {
			victim = m
		}
	}
	if victim == nil {
		return "", nil
	}
	w.setCondition(victim, "OwnerRemediated", object.False, "MachineDeleting")
	return w.delete(victim) + " to remediate it", victim
}
