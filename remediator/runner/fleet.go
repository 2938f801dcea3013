package runner

import (
	"time"

	"scute.dev/remediator"
)

// fleet counts what all policies have in progress beside this owner, and what they have seen. The limits, and how many
// machines there are, come with the look.
func (r *Runner) fleet(self *entry, facts *remediator.Facts, seen remediator.Fleet) remediator.Fleet {
	f := remediator.Fleet{
		Limits: seen.Limits, Machines: seen.Machines,
		Unhealthy: make(map[string]int), Active: make(map[string]int), Passed: make(map[string]time.Time),
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open()
	for _, e := range r.book {
		if e == self {
			continue
		}
		add(f.Unhealthy, e.toll.Unhealthy)
		add(f.Active, e.toll.Active)
		for _, at := range e.started {
			if now.Sub(at) < f.Limits.Window {
				f.Begun++
			}
		}
		for domain, at := range e.mass {
			if at.After(f.Passed[domain]) {
				f.Passed[domain] = at
			}
		}
	}
	if self != nil {
		add(f.Unhealthy, remediator.TollOf(&self.agg.state, facts).Unhealthy)
	}
	return f
}

func add(sum, counts map[string]int) {
	for domain, n := range counts {
		sum[domain] += n
	}
}

// Fleet counts what all policies have in progress and have seen, by the limits and the machines of a look.
func (r *Runner) Fleet(seen remediator.Fleet) remediator.Fleet { return r.fleet(nil, nil, seen) }
