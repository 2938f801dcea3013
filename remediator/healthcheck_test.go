package remediator_test

import (
	"slices"

	"scute.dev/kube/object"
)

// check simulates one reconcile of a MachineHealthCheck that creates SurgeRemediations, with the timeouts of the
// policy's own checks. It follows patchUnhealthyTargets and patchHealthyTargets (core/reconcilers/machinehealthcheck):
// it stops at the first unhealthy machine that has a request, and never marks a machine without a request healthy. It
// returns what it did, or "".
func (w *world) check() string {
	w.updateConditions()
	if !w.healthCheck || w.cluster.Paused {
		return ""
	}
	did := ""
	if w.exceedsLimit() {
		for _, m := range w.machines {
			switch {
			case m.Skip || m.Paused:
			case w.failsCheck(m) && !w.conditionIs(m, "HealthCheckSucceeded", object.False):
				w.set(m, "HealthCheckSucceeded", object.False, "UnhealthyNode")
				did += " only says that " + m.Name + " fails"
			case !w.failsCheck(m) && m.Node != "" && !m.Deleting && w.conditionIs(m, "HealthCheckSucceeded", object.False):
				w.set(m, "HealthCheckSucceeded", object.True, "HealthCheckSucceeded")
				did += " clears " + m.Name
			}
		}
		return did
	}
	for _, m := range w.machines {
		if m.Skip || m.Paused || !w.failsCheck(m) {
			continue
		}
		if m.Request != nil {
			break
		}
		m.Request = w.request(m)
		w.set(m, "HealthCheckSucceeded", object.False, "UnhealthyNode")
		w.set(m, "ExternallyRemediated", object.False, "WaitingForRemediation")
		did += " finds " + m.Name
	}
	for _, m := range w.machines {
		if m.Skip || m.Paused || w.failsCheck(m) || m.Node == "" || m.Deleting || m.Request == nil {
			continue
		}
		if m.Request.Deleting {
			m.Request = nil // another client removed its finalizer
		} else {
			m.Request.Deleting = true
		}
		w.set(m, "HealthCheckSucceeded", object.True, "HealthCheckSucceeded")
		did += " clears " + m.Name
	}
	return did
}

// exceedsLimit reports whether more machines are unhealthy than the limit that scute sets for a MachineHealthCheck.
func (w *world) exceedsLimit() bool {
	failing := 0
	for _, m := range w.machines {
		if !m.Skip && !m.Paused && w.failsCheck(m) {
			failing++
		}
	}
	return failing > max(1, (int(w.owner.Replicas)-1)/2)
}

// healthChecksPass returns whether the MachineHealthCheck's status counts all its machines as healthy.
func (w *world) healthChecksPass() object.ConditionStatus {
	switch {
	case !w.healthCheck:
		return object.Absent
	case slices.ContainsFunc(w.machines, func(m *machine) bool { return !m.Skip && !m.Paused && (w.failsCheck(m) || m.Node == "") }):
		return object.False
	default:
		return object.True
	}
}

// failsCheck reports whether the machine fails its checks, following needsRemediation (machinehealthcheck_targets.go).
func (w *world) failsCheck(m *machine) bool {
	ready := m.Conditions["NodeReady"]
	switch {
	case m.Remediate:
		return true
	case m.Node == "":
		return w.now.Sub(m.Created) >= w.policy.Checks.NodeStartup
	case m.FailsForeignCheck:
		return true
	}
	for _, check := range w.policy.Checks.Node {
		if ready.Status == check.Status && w.now.Sub(ready.Since) >= check.Timeout {
			return true
		}
	}
	return false
}

// stillUnhealthy reports whether an existing MachineHealthCheck still regards the machine as unhealthy.
func (w *world) stillUnhealthy(m *machine) bool {
	return w.healthCheck && m.Request != nil && w.conditionIs(m, "HealthCheckSucceeded", object.False)
}
