package remediator_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// The simulated owners act as Cluster API v1.14.2 does. The comment of each function names the function that it
// follows: those of control planes are in controlplane/kubeadm/reconcilers/kubeadmcontrolplane, those of workers in
// core/reconcilers (workers_test.go).

// act performs one reconcile of the owner, which creates or deletes at most one machine. It returns what the owner did,
// or "", and the machine that it chose to delete.
func (w *world) act() (did string, deleted *machine) {
	w.updateConditions()
	if m := w.chosen; m != nil { // it completes the reconcile that was interrupted
		if w.chosen = nil; m.Deleting || !slices.Contains(w.machines, m) {
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

// actControlPlane follows reconcile (kubeadmcontrolplane_controller.go), in the same order. While a machine is being
// deleted, reconcilePreTerminateHook ends each reconcile early, even before the cleanup of conditions.
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
	case w.owner.Uninitialized: // initializeControlPlane; further machines are created once it is initialized
		if n > 0 {
			return "", nil
		}
		return w.createMachine(nil), nil
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

// removeOrphan follows reconcileEtcdMembers: it removes a member without a machine unless a machine still waits for its
// Node, because the member could belong to that machine. A member without a name never started and is removed without a
// check.
func (w *world) removeOrphan() string {
	if !w.stacked() || len(w.orphans) == 0 || !w.quorum() || slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == "" }) {
		return ""
	}
	o := w.orphans[0]
	if slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == o.Namesake }) {
		return "" // members are matched by name
	}
	if o.Name != "" && !w.etcdHealthy(o.Name, false) {
		return ""
	}
	w.orphans = w.orphans[1:]
	return "removes a member of etcd without a machine"
}

// remediate follows reconcileUnhealthyMachines (remediation.go), where the control plane deletes the machine first.
func (w *world) remediate() (string, *machine) {
	for _, m := range w.machines {
		if w.conditionIs(m, "HealthCheckSucceeded", object.True) && w.conditionIs(m, "OwnerRemediated", object.False) {
			m.removeCondition("OwnerRemediated")
		}
	}
	if data, ok := remediation(w.owner.Relaxed); ok && slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Created.After(data.Timestamp) }) {
		w.owner.Relaxed = ""
	}
	victim := w.mostBroken()
	if victim == nil || w.owner.Relaxed != "" || w.cluster.UpgradePending {
		return "", nil
	}
	if !w.owner.Uninitialized && !w.canSpare(victim) {
		return "", nil
	}
	note, may := w.checkRetries(victim)
	if !may {
		w.setCondition(victim, "OwnerRemediated", object.False, "RemediationDeferred")
		return "", nil
	}
	w.setCondition(victim, "OwnerRemediated", object.False, "MachineDeleting")
	w.owner.Relaxed = note
	return w.delete(victim) + " to remediate it", victim
}

// canSpare reports whether an initialized control plane can spare the machine.
func (w *world) canSpare(victim *machine) bool {
	if len(w.machines) <= 1 {
		return false
	}
	if slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Node == "" && !w.conditionIs(m, "HealthCheckSucceeded", object.False) }) {
		return false // HasHealthyMachineStillProvisioning
	}
	// The owner lists no members of an external etcd, and does not remediate without that list.
	return w.stacked() && w.componentsHealthy(victim) && (victim.Node == "" || w.etcdHealthy(victim.Node, false)) && w.canMoveLeadership(victim)
}

// mostBroken follows pickMachineToBeRemediated (remediation.go). It returns nil if no machine must be remediated.
func (w *world) mostBroken() *machine {
	var choice []*machine
	for _, m := range w.machines {
		if w.conditionIs(m, "HealthCheckSucceeded", object.False) && w.conditionIs(m, "OwnerRemediated", object.False) {
			choice = append(choice, m)
		}
	}
	if len(choice) == 0 {
		return nil
	}
	first := func(a, b bool) int { // orders the value for which the condition is true first
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
			by = cmp.Or(by, first(!w.conditionIs(a, condition, object.True), !w.conditionIs(b, condition, object.True)))
		}
		return cmp.Or(by, a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

// checkRetries follows checkRetryLimits (remediation.go). It returns the owner's record of the
// remediation, and whether the remediation is allowed.
func (w *world) checkRetries(m *machine) (note string, may bool) {
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

// componentsHealthy follows targetKubernetesControlPlaneComponentsHealthy (remediation.go): it
// reports whether all components of another machine are healthy. Membership of etcd is not checked.
func (w *world) componentsHealthy(without *machine) bool {
	names := components[:4]
	if !w.stacked() {
		names = components[:3]
	}
	return slices.ContainsFunc(w.machines, func(m *machine) bool {
		return m != without && !slices.ContainsFunc(names, func(name string) bool { return !w.conditionIs(m, name, object.True) })
	})
}

// etcdHealthy follows targetEtcdClusterHealthy (remediation.go), which relies on a weak condition.
// It counts a member without a machine as healthy.
func (w *world) etcdHealthy(without string, plus bool) bool {
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
		if m.Node != "" && !w.conditionIs(m, "EtcdMemberHealthy", object.True) {
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

func (w *world) conditionIs(m *machine, condition string, status object.ConditionStatus) bool {
	return m.Conditions[condition].Status == status
}

// healthy follows checkHealthiness (preflight.go): it reports whether the machine has a Node and all its conditions, as
// the owner sees them, are True.
func (w *world) healthy(m *machine) bool {
	names := components
	if !w.stacked() {
		names = components[:3]
	}
	return m.Node != "" && !slices.ContainsFunc(names, func(name string) bool { return !w.conditionIs(m, name, object.True) })
}

func (w *world) anyDeleting() bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Deleting })
}

// outdated returns the machines that the owner would roll out (MachinesNeedingRollout). The owner reads the expiry of
// certificates from the Machine's status, not from the annotation.
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

// scaleUp follows scaleUpControlPlane and its preflight checks, some of which are skipped while a remediation is
// recorded (checkHealthinessWhileRemediationInProgress).
func (w *world) scaleUp(outdated []*machine) string {
	stable := !slices.ContainsFunc(w.machines, func(m *machine) bool { return !w.healthy(m) })
	if _, relaxed := remediation(w.owner.Relaxed); relaxed && !stable {
		stable = w.componentsHealthy(nil) && (!w.stacked() || w.etcdHealthy("", true))
	}
	if !stable || w.cluster.UpgradePending {
		return ""
	}
	return w.createMachine(outdated)
}

func (w *world) createMachine(outdated []*machine) string {
	if w.owner.Refused != "" {
		return ""
	}
	m := w.provision(w.domain(outdated))
	if w.owner.Relaxed != "" {
		m.RemediationFor, w.owner.Relaxed = w.owner.Relaxed, ""
	}
	return "makes " + m.Name
}

// domain returns the failure domain with the fewest machines, not counting outdated ones.
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

// scaleDown follows scaleDownControlPlane (scale.go), whose preflight checks skip the machine that it chose.
func (w *world) scaleDown(outdated []*machine) (string, *machine) {
	chosen := w.pick(w.machines, outdated)
	if w.cluster.UpgradePending || slices.ContainsFunc(w.machines, func(m *machine) bool { return m != chosen && !w.healthy(m) }) || !w.canMoveLeadership(chosen) {
		return "", nil
	}
	if w.delaysDeletion {
		w.delaysDeletion, w.chosen, w.chosenAt = false, chosen, w.now
		return "has chosen to delete " + chosen.Name, nil
	}
	return w.delete(chosen), chosen
}

// canMoveLeadership follows forwardEtcdLeadership: it reports whether the owner can move leadership
// away from the machine. The owner needs the kubelet of the leader for that.
func (w *world) canMoveLeadership(m *machine) bool { return !w.stacked() || !m.Leader || m.Kubelet }

// pick follows selectMachineForInPlaceUpdateOrScaleDown (scale.go).
func (w *world) pick(all, outdated []*machine) *machine {
	marked := func(in []*machine) (out []*machine) {
		for _, m := range in {
			if m.DeleteAnnotation != "" {
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
			if other != m && w.isHealthy(other) {
				w.elect(other.Node)
				break
			}
		}
	}
	m.Deleting, m.DeletingSince = true, w.now
	return "deletes " + m.Name
}

// finishDeletion completes the deletion of a machine where the owner and the infrastructure allow
// it, and reports whether it did. A control plane follows reconcilePreTerminateHook: it starts with
// the machine that has been deleting longest, and needs components running elsewhere, quorum by its
// own arithmetic, and movable leadership. The etcd member of a machine without a Node remains.
func (w *world) finishDeletion(m *machine) bool {
	if !m.Deleting || len(m.Hooks) > 0 || !w.canFinishDeletion(m) {
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
		w.forwardLeadership()
	}
	if !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Member && !m.Learner }) {
		w.orphans = nil // etcd is lost with its last voter; the next one is new
	}
	return true
}

// forwardLeadership follows getCandidatesForEtcdLeadership (kubeadmcontrolplane_controller.go): it
// prefers machines that no MachineHealthCheck finds unhealthy, then the newest, and skips machines
// that are being deleted.
func (w *world) forwardLeadership() {
	to := ""
	for _, m := range w.machines { // the newest machine is last
		if m.Node != "" && !m.Deleting && m.Etcd && !m.Learner && (to == "" || !w.conditionIs(m, "HealthCheckSucceeded", object.False)) {
			to = m.Node
		}
	}
	w.elect(to)
}

func (w *world) canFinishDeletion(m *machine) bool {
	if w.owner.Kind != string(remediator.ControlPlane) || len(w.machines) == 1 || w.owner.Deleting {
		return true
	}
	w.updateConditions()
	for _, other := range w.machines {
		if other != m && other.Deleting && len(other.Hooks) == 0 && other.DeletingSince.Before(m.DeletingSince) {
			return false
		}
	}
	switch {
	case !w.componentsHealthy(m):
		return false
	case !w.stacked() || m.Node == "":
		return true
	case !m.Member:
		return w.etcdHealthy(m.Node, false)
	default:
		return w.quorum() && w.etcdHealthy(m.Node, false) && w.canMoveLeadership(m)
	}
}
