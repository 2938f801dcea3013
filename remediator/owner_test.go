package remediator_test

import (
	"encoding/json"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// act is one reconcile of the owner: at most one machine is made or begins to go. It says what the owner did, "" for
// nothing, and which machine it chose to delete.
func (w *world) act() (did string, deleted *machine) {
	w.settle()
	if w.cluster.Paused || w.owner.Paused || !w.owner.Found {
		return "", nil
	}
	w.owner.Observed = true
	if w.cluster.Topology && w.owner.Replicas != w.cluster.TopologyReplicas {
		w.owner.Replicas = w.cluster.TopologyReplicas
	}
	if w.owner.Kind != string(remediator.ControlPlane) {
		return w.actWorkers()
	}
	if did, deleted = w.remediate(); did != "" {
		return did, deleted
	}
	outdated := w.outdated()
	switch n := len(w.machines); {
	case len(outdated) > 0 && n < int(w.owner.Replicas+w.owner.MaxSurge):
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

func (w *world) actWorkers() (string, *machine) {
	var alive []*machine
	for _, m := range w.machines {
		if !m.Deleting {
			alive = append(alive, m)
		}
	}
	switch n := len(alive); {
	case n < int(w.owner.Replicas):
		return "makes " + w.provision("").Name, nil
	case n > int(w.owner.Replicas):
		chosen := w.pick(alive, nil)
		return w.delete(chosen), chosen
	}
	return "", nil
}

// remediate is the control plane's own remediation, which deletes first.
func (w *world) remediate() (string, *machine) {
	for _, m := range w.machines {
		if w.is(m, "HealthCheckSucceeded", object.True) && w.is(m, "OwnerRemediated", object.False) {
			delete(m.Conditions, "OwnerRemediated")
		}
	}
	if data, ok := remediation(w.owner.Relaxed); ok && slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Created.After(data.Timestamp) }) {
		w.owner.Relaxed = ""
	}
	var victim *machine
	for _, m := range w.machines {
		if w.is(m, "HealthCheckSucceeded", object.False) && w.is(m, "OwnerRemediated", object.False) && (victim == nil || w.healthy(victim) && !w.healthy(m)) {
			victim = m
		}
	}
	if victim == nil || victim.Deleting || w.owner.Relaxed != "" || len(w.machines) <= 1 || w.cluster.UpgradePending || w.anyDeleting() {
		return "", nil
	}
	others := false // one of them is whole
	for _, m := range w.machines {
		if m.Node == "" && m != victim && !w.is(m, "HealthCheckSucceeded", object.False) {
			return "", nil
		}
		others = others || m != victim && w.healthy(m)
	}
	if !others || w.stacked() && !w.safe(victim, false) || !w.led(victim) {
		return "", nil
	}
	victim.Conditions["OwnerRemediated"] = remediator.Condition{Status: object.False, Reason: "MachineDeleting", Since: w.now}
	w.owner.Relaxed = inProgressFor(victim, w.now)
	return w.delete(victim) + " to remediate it", victim
}

func inProgressFor(m *machine, now time.Time) string {
	data, err := json.Marshal(inProgress{Machine: m.Name, Timestamp: now})
	if err != nil {
		return ""
	}
	return string(data)
}

// safe is the owner's arithmetic, which trusts a condition that says little.
func (w *world) safe(without *machine, plus bool) bool {
	voters, bad := 0, 0
	if plus {
		voters, bad = 1, 1
	}
	for _, m := range w.machines {
		if !m.Member || m == without {
			continue
		}
		if m.Learner {
			return false
		}
		voters++
		if !w.is(m, "EtcdMemberHealthy", object.True) {
			bad++
		}
	}
	if plus && voters == 2 {
		bad = 0
	}
	return voters-bad >= voters/2+1
}

func (w *world) is(m *machine, condition string, status object.Truth) bool {
	return m.Conditions[condition].Status == status
}

// healthy: the machine's conditions, as the owner sees them, are all True.
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

// outdated: the owner would roll the machine out.
func (w *world) outdated() []*machine {
	var out []*machine
	for _, m := range w.machines {
		expires, err := time.Parse(time.RFC3339, m.Certificates)
		if m.Template != w.target || m.ClonedFrom != m.Template || w.owner.CertificateLever && err == nil && !expires.After(w.now.Add(30*24*time.Hour)) {
			if !m.Deleting {
				out = append(out, m)
			}
		}
	}
	return out
}

func (w *world) scaleUp(outdated []*machine) string {
	stable := !slices.ContainsFunc(w.machines, func(m *machine) bool { return !w.healthy(m) })
	if _, relaxed := remediation(w.owner.Relaxed); relaxed && !stable {
		stable = slices.ContainsFunc(w.machines, w.healthy) && (!w.stacked() || w.safe(nil, true))
	}
	if !stable || w.anyDeleting() || w.cluster.UpgradePending {
		return ""
	}
	m := w.provision(w.domain(outdated))
	if w.owner.Relaxed != "" {
		m.RemediationFor, w.owner.Relaxed = w.owner.Relaxed, ""
	}
	return "makes " + m.Name
}

// domain with the fewest machines, not counting those that are to go.
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

func (w *world) scaleDown(outdated []*machine) (string, *machine) {
	chosen := w.pick(w.machines, outdated)
	if w.anyDeleting() || w.cluster.UpgradePending || slices.ContainsFunc(w.machines, func(m *machine) bool { return m != chosen && !w.healthy(m) }) || !w.led(chosen) {
		return "", nil
	}
	return w.delete(chosen), chosen
}

// led: the owner can take leadership off the machine. Through a dead kubelet it cannot.
func (w *world) led(m *machine) bool { return !w.stacked() || !m.Leader || m.Kubelet }

// pick is the owner's choice of the machine to delete.
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
