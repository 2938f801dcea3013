package runner

import (
	"maps"
	"slices"
	"time"

	"scute.dev/remediator"
)

// fleet returns the remediations in progress of other owners and the machines of all owners, as they count for a namespace. The limits and the
// numbers of selected machines are those of the observation (seen).
func (r *Runner) fleet(self *tracker, namespace string, seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.usedByOthers(self, seen)
	f.Machines, f.Unhealthy = remediator.NewMassEvidence(seen.Selected, r.marked).For(namespace)
	f.MassFailuresEnded = r.massFailuresEnded(namespace)
	return f
}

// usedByOthers counts the usage of the limits by all owners but self. The caller holds the lock.
func (r *Runner) usedByOthers(self *tracker, seen remediator.Fleet) remediator.Fleet {
	f := remediator.Fleet{Limits: seen.Limits, Selected: seen.Selected, Watched: seen.Watched, Active: make(map[string]int)}
	now := r.now()
	for _, e := range r.owners {
		if e == self {
			continue
		}
		if now.Sub(e.Since) < remediator.CountsFor {
			for domain, n := range e.Active {
				f.Active[domain] += n
			}
		}
		for _, at := range e.started {
			if now.Sub(at) < f.Limits.Window {
				f.Starts = append(f.Starts, at)
			}
		}
	}
	return f
}

// massFailuresEnded returns when the mass failures that count for a namespace ended. Of the other namespaces, the one whose mass failure ended last does not
// count. For the namespace "" all count. The caller holds the lock.
func (r *Runner) massFailuresEnded(namespace string) map[string]time.Time {
	by := make(map[string]map[string]time.Time)
	for _, e := range r.owners {
		if e.group.DryRun && e.group.Namespace != namespace {
			continue
		}
		for domain, at := range e.massFailuresEnded {
			if by[domain] == nil {
				by[domain] = make(map[string]time.Time)
			}
			if at.After(by[domain][e.group.Namespace]) {
				by[domain][e.group.Namespace] = at
			}
		}
	}
	passed := make(map[string]time.Time)
	for domain, times := range by {
		own := times[namespace]
		delete(times, namespace)
		others := slices.SortedFunc(maps.Values(times), func(a, b time.Time) int { return b.Compare(a) })
		if namespace != "" {
			others = others[min(1, len(others)):]
		}
		if last := slices.MaxFunc(append(others, own), time.Time.Compare); !last.IsZero() {
			passed[domain] = last
		}
	}
	return passed
}

// Fleet returns the remediations in progress and the machines of all policies, by the limits and selected machines of an observation. Fails contains
// the mass failures for any namespace.
func (r *Runner) Fleet(seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.usedByOthers(nil, seen)
	evidence := remediator.NewMassEvidence(seen.Selected, r.marked)
	f.MassFailuresEnded = r.massFailuresEnded("")
	f.FailingDomains = make(map[string]bool)
	namespaces := make(map[string]bool) // with selected or marked machines
	for _, counts := range []remediator.NamespaceCounts{seen.Selected, r.marked} {
		for group := range counts {
			namespaces[group.Namespace] = true
		}
	}
	for namespace := range namespaces {
		one := remediator.Fleet{Limits: seen.Limits}
		one.Machines, one.Unhealthy = evidence.For(namespace)
		one.AddFailing(f.FailingDomains)
	}
	f.Machines, f.Unhealthy = evidence.For("")
	return f
}
