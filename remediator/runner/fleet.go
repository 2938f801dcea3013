package runner

import (
	"time"

	"scute.dev/remediator"
)

// waitsFor is how long the word of an owner that waits for a limit counts: one that waits looks again before.
const waitsFor = time.Minute

// fleet counts what all policies have in progress beside this owner, and what they have seen, as the owner's namespace takes it.
// The limits, and how many machines there are, come with the look. What the owner itself has seen is in its tracker.
func (r *Runner) fleet(self *tracker, namespace string, seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.used(self, seen)
	trust := f.Limits.Share == 0
	f.Machines, f.Unhealthy = remediator.Weigh(seen.Selected, r.marked).For(namespace, trust)
	f.Alone = !seen.Selected.Others(namespace)
	f.Passed = r.passed(namespace, trust)
	return f
}

// used is what all owners but one use of the limits. The lock is held.
func (r *Runner) used(self *tracker, seen remediator.Fleet) remediator.Fleet {
	f := remediator.Fleet{Limits: seen.Limits, Selected: seen.Selected, Watched: seen.Watched, Active: make(map[string]int), Uses: make(map[string]remediator.Use)}
	now := r.now()
	for _, e := range r.owners {
		waits := !e.party.DryRun && now.Sub(e.turnedAt) < waitsFor && len(e.awaited) > 0
		if len(e.toll.Active) == 0 && len(e.started) == 0 && !waits {
			continue
		}
		use := f.Uses[e.party.Namespace]
		if e != self && now.Sub(e.toll.Since) < remediator.CountsFor {
			if use.Active == nil {
				use.Active = make(map[string]int)
			}
			add(use.Active, e.toll.Active)
			add(f.Active, e.toll.Active)
		}
		for _, at := range e.started {
			if e != self && now.Sub(at) < f.Limits.Window {
				use.Begun = append(use.Begun, at)
				f.Begun = append(f.Begun, at)
			}
			if at.After(use.Last) {
				use.Last = at
			}
		}
		if waits {
			if use.Waits == nil {
				use.Waits = make(map[remediator.Limit]bool)
			}
			for _, limit := range e.awaited {
				use.Waits[limit] = true
			}
		}
		f.Uses[e.party.Namespace] = use
	}
	return f
}

// passed is when mass failures ended, as a namespace takes it: of the other namespaces, the last one that says so does not count
// where namespaces do not trust each other. The lock is held.
func (r *Runner) passed(namespace string, trust bool) map[string]time.Time {
	by := make(map[string]map[string]time.Time)
	for _, e := range r.owners {
		if e.party.DryRun && e.party.Namespace != namespace {
			continue
		}
		for domain, at := range e.mass {
			if by[domain] == nil {
				by[domain] = make(map[string]time.Time)
			}
			if at.After(by[domain][e.party.Namespace]) {
				by[domain][e.party.Namespace] = at
			}
		}
	}
	passed := make(map[string]time.Time)
	for domain, times := range by {
		var last, second time.Time
		for name, at := range times {
			switch {
			case name == namespace:
			case at.After(last):
				last, second = at, last
			case at.After(second):
				second = at
			}
		}
		if !trust {
			last = second
		}
		if own := times[namespace]; own.After(last) {
			last = own
		}
		if !last.IsZero() {
			passed[domain] = last
		}
	}
	return passed
}

func add(sum, counts map[string]int) {
	for domain, n := range counts {
		sum[domain] += n
	}
}

// Fleet counts what all policies have in progress and have seen, by the limits and the machines of a look. A mass failure is there
// when there is one for some namespace.
func (r *Runner) Fleet(seen remediator.Fleet) remediator.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.used(nil, seen)
	evidence, trust := remediator.Weigh(seen.Selected, r.marked), f.Limits.Share == 0
	f.Passed = r.passed("", true)
	f.Fails = make(map[string]bool)
	for namespace := range r.namespaces(seen.Selected) {
		one := remediator.Fleet{Limits: seen.Limits}
		one.Machines, one.Unhealthy = evidence.For(namespace, trust)
		one.Failures(f.Fails)
	}
	f.Machines, f.Unhealthy = evidence.For("", true)
	return f
}

// namespaces that have machines which policies select, or that are marked. The lock is held.
func (r *Runner) namespaces(selected remediator.Counts) map[string]bool {
	all := make(map[string]bool)
	for _, counts := range []remediator.Counts{selected, r.marked} {
		for party := range counts {
			all[party.Namespace] = true
		}
	}
	return all
}
