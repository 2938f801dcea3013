package remediator_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// The owners of the world act as Cluster API v1.14.2 does. Each function names the one that it follows: a control plane's
// in controlplane/kubeadm/reconcilers/kubeadmcontrolplane, those of workers in core/reconcilers (workers_test.go).

// act is one reconcile of the owner: at most one machine is made or begins to be deleted. It says what the owner did, ""
// for nothing, and which machine it chose to delete.
func (w *world) act() (did string, deleted *machine) {
	w.settle()
	if m := w.meant; m != nil { // it ends the reconcile that it is in
		if w.meant = nil; m.Deleting || !slices.Contains(w.machines, m) {
			return "", nil
		}
		return w.delete(m) + ", which it had chosen", nil
	}
	if w.cluster.Paused || w.owner.Paused || !w.owner.Found {
		return "", nil
	}
	w.owner.Observed = true
	if w.owner.Deleting {
		return w.actDeleted(), nil
	}
	if w.cluster.Topology && w.owner.Replicas != w.cluster.TopologyReplicas {
		w.owner.Replicas = w.cluster.TopologyReplicas
	}
	if w.owner.Kind != string(remediator.ControlPlane) {
		return w.actWorkers()
	}
	return w.actControlPlane()
}

// actControlPlane follows reconcile (kubeadmcontrolplane_controller.go), in its order. While a machine is being deleted,
// reconcilePreTerminateHook ends each reconcile: nothing behind it runs, not even the cleanup of conditions.
func (w *world) actControlPlane() (string, *machine) {
	if did := w.removeOrphan(); did != "" {
		return did, nil
	}
	if w.anyDeleting() {
		return "", nil
	}
	if did, deleted := w.remediate(); did != "" {
		return did, deleted
	}
	if slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Updating }) {
		return "", nil
	}
	outdated := w.outdated()
	switch n := len(w.machines); {
	case w.owner.Uninitialized: // initializeControlPlane; the next machines are made when it is
		if n > 0 {
			return "", nil
		}
		return w.make(nil), nil
	case len(outdated) > 0 && n < int(w.owner.Replicas+w.owner.MaxSurge): // update.go, rollingUpdate
		return w.scaleUp(outdated), nil
	case len(outdated) > 0:
		return w.scaleDown(outdated)
	case n < int(w.owner.Replicas):
		return w.scaleUp(nil), nil
	case n > int(w.owner.Replicas):
		return w.scaleDown(nil)
	}
	return "", nil
}

// removeOrphan follows reconcileEtcdMembers: a member without a machine is removed when no machine waits for its Node, for
// it could be that one's. One without a name never started: it is removed unseen.
func (w *world) removeOrphan() string {
	if !w.stacked() || len(w.orphans) == 0 || !w.quorum() || slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == "" }) {
		return ""
	}
	o := w.orphans[0]
	if slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == o.Namesake }) {
		return "" // it knows members by their names
	}
	if o.Name != "" && !w.safe(o.Name, false) {
		return ""
	}
	w.orphans = w.orphans[1:]
	return "removes a member of etcd without a machine"
}

// remediate follows reconcileUnhealthyMachines (remediation.go): the control plane's own remediation deletes first.
func (w *world) remediate() (string, *machine) {
	for _, m := range w.machines {
		if w.is(m, "HealthCheckSucceeded", object.True) && w.is(m, "OwnerRemediated", object.False) {
			m.forget("OwnerRemediated")
		}
	}
	if data, ok := remediation(w.owner.Relaxed); ok && slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Created.After(data.Timestamp) }) {
		w.owner.Relaxed = ""
	}
	victim := w.mostBroken()
	if victim == nil || w.owner.Relaxed != "" || w.cluster.UpgradePending {
		return "", nil
	}
	if !w.owner.Uninitialized && !w.spares(victim) {
		return "", nil
	}
	note, may := w.retries(victim)
	if !may {
		w.note(victim, "OwnerRemediated", object.False, "RemediationDeferred")
		return "", nil
	}
	w.note(victim, "OwnerRemediated", object.False, "MachineDeleting")
	w.owner.Relaxed = note
	return w.delete(victim) + " to remediate it", victim
}

// spares is what is asked of an initialized control plane.
func (w *world) spares(victim *machine) bool {
	if len(w.machines) <= 1 {
		return false
	}
	if slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == "" && !w.is(m, "HealthCheckSucceeded", object.False) }) {
		return false // HasHealthyMachineStillProvisioning
	}
	// It lists no members of an external etcd, and remediates nothing without a list of them.
	return w.stacked() && w.runs(victim) && (victim.Node == "" || w.safe(victim.Node, false)) && w.led(victim)
}

// mostBroken follows pickMachineToBeRemediated (remediation.go); nil when no machine must be remediated.
func (w *world) mostBroken() *machine {
	var choice []*machine
	for _, m := range w.machines {
		if w.is(m, "HealthCheckSucceeded", object.False) && w.is(m, "OwnerRemediated", object.False) {
			choice = append(choice, m)
		}
	}
	if len(choice) == 0 {
		return nil
	}
	first := func(a, b bool) int { // the one of which it is true
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	order := []string{"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy"}
	if w.stacked() {
		order = append([]string{"EtcdMemberHealthy", "EtcdPodHealthy"}, order...)
	}
	return slices.MinFunc(choice, func(a, b *machine) int {
		by := cmp.Or(first(a.Remediate, b.Remediate), first(a.Node == "", b.Node == ""))
		for _, condition := range order {
			by = cmp.Or(by, first(!w.is(a, condition, object.True), !w.is(b, condition, object.True)))
		}
		return cmp.Or(by, a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

// retries follows checkRetryLimits (remediation.go): what the owner notes of the remediation, and whether it may be.
func (w *world) retries(m *machine) (note string, may bool) {
	now, retry := inProgress{Machine: m.Name, Timestamp: w.now}, w.owner.Retry
	if last, ok := remediation(m.RemediationFor); ok && last.Timestamp.Add(retry.MinHealthy).After(w.now) {
		now.RetryCount = last.RetryCount
		if last.Timestamp.Add(retry.Period).After(w.now) || retry.Max != nil && last.RetryCount >= int(*retry.Max) {
			return "", false
		}
		now.RetryCount++
	}
	data, err := json.Marshal(now)
	return string(data), err == nil
}

// runs follows targetKubernetesControlPlaneComponentsHealthy (remediation.go): components of a machine other than this one
// are all healthy. Membership of etcd is not asked for.
func (w *world) runs(without *machine) bool {
	names := components[:4]
	if !w.stacked() {
		names = components[:3]
	}
	return slices.ContainsFunc(w.machines, func(m *machine) bool {
		return m != without && !slices.ContainsFunc(names, func(name string) bool { return !w.is(m, name, object.True) })
	})
}

// safe follows targetEtcdClusterHealthy (remediation.go): the owner's arithmetic, which trusts a condition that says little.
// A member without a machine counts as healthy.
func (w *world) safe(without string, plus bool) bool {
	voters, bad := 0, 0
	for _, o := range w.orphans {
		switch {
		case o.Name != "" && o.Name == without:
		case o.Learner:
			return false
		default:
			voters++
		}
	}
	for _, m := range w.machines {
		if !m.Member || m.Node != "" && m.Node == without {
			continue
		}
		if m.Learner {
			return false
		}
		voters++
		if m.Node != "" && !w.is(m, "EtcdMemberHealthy", object.True) {
			bad++
		}
	}
	if plus {
		if voters > 1 {
			bad++
		}
		voters++
	}
	return voters-bad >= voters/2+1
}

func (w *world) is(m *machine, condition string, status object.Truth) bool {
	return m.Conditions[condition].Status == status
}

// healthy follows checkHealthiness (preflight.go): the machine has a Node, and its conditions, as the owner sees them, are
// all True.
func (w *world) healthy(m *machine) bool {
	names := components
	if !w.stacked() {
		names = components[:3]
	}
	return m.Node != "" && !slices.ContainsFunc(names, func(name string) bool { return !w.is(m, name, object.True) })
}

func (w *world) anyDeleting() bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Deleting })
}

// outdated: the owner would roll the machine out (MachinesNeedingRollout). It reads the expiry of certificates from the
// Machine's status, not from the annotation.
func (w *world) outdated() []*machine {
	var out []*machine
	for _, m := range w.machines {
		expires, err := time.Parse(time.RFC3339, m.CertificatesStatus)
		if m.Template != w.target || m.ClonedFrom != m.Template || w.owner.CertificateTrigger && err == nil && !expires.After(w.now.Add(30*24*time.Hour)) {
			if !m.Deleting {
				out = append(out, m)
			}
		}
	}
	return out
}

// scaleUp follows scaleUpControlPlane and its preflight checks, which are fewer with the note of a remediation
// (checkHealthinessWhileRemediationInProgress).
func (w *world) scaleUp(outdated []*machine) string {
	stable := !slices.ContainsFunc(w.machines, func(m *machine) bool { return !w.healthy(m) })
	if _, relaxed := remediation(w.owner.Relaxed); relaxed && !stable {
		stable = w.runs(nil) && (!w.stacked() || w.safe("", true))
	}
	if !stable || w.cluster.UpgradePending {
		return ""
	}
	return w.make(outdated)
}

func (w *world) make(outdated []*machine) string {
	if w.owner.Refused != "" {
		return ""
	}
	m := w.provision(w.domain(outdated))
	if w.owner.Relaxed != "" {
		m.RemediationFor, w.owner.Relaxed = w.owner.Relaxed, ""
	}
	return "makes " + m.Name
}

// domain with the fewest machines, not counting those that are being replaced.
func (w *world) domain(outdated []*machine) string {
	best, least := "", 0
	for _, d := range w.cluster.FailureDomains {
		n := 0
		for _, m := range w.machines {
			if m.FailureDomain == d && !slices.Contains(outdated, m) {
				n++
			}
		}
		if best == "" || n < least {
			best, least = d, n
		}
	}
	return best
}

// scaleDown follows scaleDownControlPlane (scale.go): its preflight checks leave out the machine that it chose.
func (w *world) scaleDown(outdated []*machine) (string, *machine) {
	chosen := w.pick(w.machines, outdated)
	if w.cluster.UpgradePending || slices.ContainsFunc(w.machines, func(m *machine) bool { return m != chosen && !w.healthy(m) }) || !w.led(chosen) {
		return "", nil
	}
	if w.hesitates {
		w.hesitates, w.meant, w.meantAt = false, chosen, w.now
		return "has chosen to delete " + chosen.Name, nil
	}
	return w.delete(chosen), chosen
}

// led follows forwardEtcdLeadership: the owner can take leadership off the machine. It asks the leader itself, through its
// kubelet; where that is dead, it cannot.
func (w *world) led(m *machine) bool { return !w.stacked() || !m.Leader || m.Kubelet }

// pick follows selectMachineForInPlaceUpdateOrScaleDown (scale.go).
func (w *world) pick(all, outdated []*machine) *machine {
	marked := func(in []*machine) (out []*machine) {
		for _, m := range in {
			if m.DeleteMark != "" {
				out = append(out, m)
			}
		}
		return out
	}
	broken := slices.DeleteFunc(slices.Clone(outdated), w.healthy)
	choice := all
	for _, set := range [][]*machine{marked(outdated), marked(all), broken, outdated} {
		if len(set) > 0 {
			choice = set
			break
		}
	}
	spread := make(map[string]int)
	for _, m := range all {
		spread[m.FailureDomain]++
	}
	return slices.MinFunc(choice, func(a, b *machine) int {
		if n := spread[b.FailureDomain] - spread[a.FailureDomain]; n != 0 {
			return n
		}
		return a.Created.Compare(b.Created)
	})
}

func (w *world) delete(m *machine) string {
	if m.Leader && m.Etcd {
		for _, other := range w.machines {
			if other != m && w.well(other) {
				w.elect(other.Node)
				break
			}
		}
	}
	m.Deleting, m.DeletingSince = true, w.now
	return "deletes " + m.Name
}

// gone lets the owner and the infrastructure end the deletion of a machine, where they can. A control plane follows
// reconcilePreTerminateHook: the machine that is longest deleting first, and only where components run elsewhere,
// quorum is kept by its arithmetic, and leadership can be moved. The member of one without a Node outlives it.
func (w *world) gone(m *machine) bool {
	if !m.Deleting || len(m.Hooks) > 0 || !w.mayEnd(m) {
		return false
	}
	w.machines = slices.DeleteFunc(w.machines, func(other *machine) bool { return other == m })
	if m.Member && m.Node == "" {
		o := orphan{Learner: m.Learner}
		if m.Etcd {
			o.Name = "node-" + m.Name
		}
		w.orphans = append(w.orphans, o)
	}
	if m.Leader {
		w.forward()
	}
	if !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Member && !m.Learner }) {
		w.orphans = nil // with the last voter etcd is gone; the next one is new
	}
	return true
}

// forward follows getCandidatesForEtcdLeadership (kubeadmcontrolplane_controller.go): of the machines that nobody deletes, one that no
// MachineHealthCheck finds unhealthy, and the newest.
func (w *world) forward() {
	to := ""
	for _, m := range w.machines { // the newest is the last
		if m.Node != "" && !m.Deleting && m.Etcd && !m.Learner && (to == "" || !w.is(m, "HealthCheckSucceeded", object.False)) {
			to = m.Node
		}
	}
	w.elect(to)
}

func (w *world) mayEnd(m *machine) bool {
	if w.owner.Kind != string(remediator.ControlPlane) || len(w.machines) == 1 || w.owner.Deleting {
		return true
	}
	w.settle()
	for _, other := range w.machines {
		if other != m && other.Deleting && len(other.Hooks) == 0 && other.DeletingSince.Before(m.DeletingSince) {
			return false
		}
	}
	switch {
	case !w.runs(m):
		return false
	case !w.stacked() || m.Node == "":
		return true
	case !m.Member:
		return w.safe(m.Node, false)
	default:
		return w.quorum() && w.safe(m.Node, false) && w.led(m)
	}
}
