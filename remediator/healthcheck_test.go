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
	w.settle()
	if !w.healthCheck || w.cluster.Paused {
		return ""
	}
	did := ""
	if w.overLimit() {
		for _, m := range w.machines {
			switch {
			case m.Skip || m.Paused:
			case w.fails(m) && !w.is(m, "HealthCheckSucceeded", object.False):
				w.set(m, "HealthCheckSucceeded", object.False, "UnhealthyNode")
				did += " only says that " + m.Name + " fails"
			case !w.fails(m) && m.Node != "" && !m.Deleting && w.is(m, "HealthCheckSucceeded", object.False):
				w.set(m, "HealthCheckSucceeded", object.True, "HealthCheckSucceeded")
				did += " clears " + m.Name
			}
		}
		return did
	}
	for _, m := range w.machines {
		if m.Skip || m.Paused || !w.fails(m) {
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
		if m.Skip || m.Paused || w.fails(m) || m.Node == "" || m.Deleting || m.Request == nil {
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

// overLimit reports whether more machines are unhealthy than the limit that scute sets for a MachineHealthCheck.
func (w *world) overLimit() bool {
	failing := 0
	for _, m := range w.machines {
		if !m.Skip && !m.Paused && w.fails(m) {
			failing++
		}
	}
	return failing > max(1, (int(w.owner.Replicas)-1)/2)
}

// passes returns whether the MachineHealthCheck's status counts all its machines as healthy.
func (w *world) passes() object.Truth {
	switch {
	case !w.healthCheck:
		return object.Absent
	case slices.ContainsFunc(w.machines, func(m *machine) bool { return !m.Skip && !m.Paused && (w.fails(m) || m.Node == "") }):
		return object.False
	default:
		return object.True
	}
}

// fails reports whether the machine fails its checks, following needsRemediation (machinehealthcheck_targets.go).
func (w *world) fails(m *machine) bool {
	ready := m.Conditions["NodeReady"]
	switch {
	case m.Remediate:
		return true
	case m.Node == "":
		return w.now.Sub(m.Created) >= w.policy.Checks.NodeStartup
	case m.Ill:
		return true
	}
	for _, check := range w.policy.Checks.Node {
		if ready.Status == check.Status && w.now.Sub(ready.Since) >= check.Timeout {
			return true
		}
	}
	return false
}

// opinion reports whether an existing MachineHealthCheck still regards the machine as unhealthy.
func (w *world) opinion(m *machine) bool {
	return w.healthCheck && m.Request != nil && w.is(m, "HealthCheckSucceeded", object.False)
}
