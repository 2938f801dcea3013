package runner

import (
	"maps"
	"slices"
	"time"

	"scute.dev/remediator"
)

// fleet counts what all policies have in progress beside this owner, and what they have seen, as the owner's namespace takes it.
// The limits, and how many machines there are, come with the look. What the owner itself has seen is in its tracker.
func (r *Runner) fleet(self *tracker, namespace string, seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.used(self, seen)
	f.Machines, f.Unhealthy = remediator.NewMassEvidence(seen.Selected, r.marked).For(namespace)
	f.Passed = r.passed(namespace)
	return f
}

// used counts what all owners but one use of the limits. The lock is held.
func (r *Runner) used(self *tracker, seen remediator.Fleet) remediator.Fleet {
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
				f.Begun = append(f.Begun, at)
			}
		}
	}
	return f
}

// passed returns when mass failures ended, as a namespace takes it: of the other namespaces, the one whose mass failure ended last does not
// count. For the namespace "" all count. The lock is held.
func (r *Runner) passed(namespace string) map[string]time.Time {
	by := make(map[string]map[string]time.Time)
	for _, e := range r.owners {
		if e.group.DryRun && e.group.Namespace != namespace {
			continue
		}
		for domain, at := range e.mass {
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

// Fleet counts what all policies have in progress and have seen, by the limits and the machines of a look. A mass failure is there
// when there is one for some namespace.
func (r *Runner) Fleet(seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.used(nil, seen)
	evidence := remediator.NewMassEvidence(seen.Selected, r.marked)
	f.Passed = r.passed("")
	f.Fails = make(map[string]bool)
	namespaces := make(map[string]bool) // that have machines which policies select, or that are marked
	for _, counts := range []remediator.NamespaceCounts{seen.Selected, r.marked} {
		for group := range counts {
			namespaces[group.Namespace] = true
		}
	}
	for namespace := range namespaces {
		one := remediator.Fleet{Limits: seen.Limits}
		one.Machines, one.Unhealthy = evidence.For(namespace)
		one.Failures(f.Fails)
	}
	f.Machines, f.Unhealthy = evidence.For("")
	return f
}
