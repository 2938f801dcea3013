package remediator

import (
	"slices"
	"time"
)

// Party is who counts machines: the policies of a namespace. Those in dry run count apart: what they see is for their own
// namespace alone.
type Party struct {
	Namespace string
	DryRun    bool
}

// Counts are numbers of machines by failure domain, of each party.
type Counts map[Party]map[string]int

// Add changes a count.
func (c Counts) Add(p Party, domain string, n int) {
	if c[p] == nil {
		c[p] = make(map[string]int)
	}
	if c[p][domain] += n; c[p][domain] == 0 {
		delete(c[p], domain)
	}
}

// Others says that policies of another namespace select machines.
func (c Counts) Others(namespace string) bool {
	for party, machines := range c {
		if party.Namespace != namespace && !party.DryRun && len(machines) > 0 {
			return true
		}
	}
	return false
}

// MassEvidence is what there is to say of a mass failure: how many machines are healthy and unhealthy, by failure domain.
type MassEvidence struct {
	healthy, unhealthy map[string]*sum
	rehearsed          [2]Counts // healthy and unhealthy machines of policies in dry run
}

// sum of what namespaces count.
type sum struct {
	all          int
	most, second int
	who          string // counts most
}

func (s *sum) add(namespace string, n int) {
	s.all += n
	switch {
	case n > s.most:
		s.second, s.most, s.who = s.most, n, namespace
	case n > s.second:
		s.second = n
	}
}

// believed by a namespace: what it counts itself, and what the others count but for the one that counts most.
func (s *sum) believed(namespace string) int {
	if s.who == namespace {
		return s.all - s.second
	}
	return s.all - s.most
}

// Weigh gathers the evidence from the machines that policies select, and those of them that are marked.
func Weigh(selected, marked Counts) *MassEvidence {
	e := &MassEvidence{healthy: make(map[string]*sum), unhealthy: make(map[string]*sum), rehearsed: [2]Counts{{}, {}}}
	count := func(to map[string]*sum, rehearsed Counts, p Party, domain string, n int) {
		switch {
		case n <= 0:
		case p.DryRun:
			rehearsed.Add(p, domain, n)
		default:
			if to[domain] == nil {
				to[domain] = &sum{}
			}
			to[domain].add(p.Namespace, n)
		}
	}
	for party, domains := range selected {
		for domain, n := range domains {
			count(e.healthy, e.rehearsed[0], party, domain, n-marked[party][domain])
		}
	}
	for party, domains := range marked {
		for domain, n := range domains {
			count(e.unhealthy, e.rehearsed[1], party, domain, n)
		}
	}
	return e
}

// For is the evidence as a namespace takes it: machines, and the unhealthy ones of them. What one other namespace says alone
// neither makes a mass failure nor hides one: of the others, the one with the most unhealthy machines does not count as
// unhealthy, nor the one with the most healthy machines as healthy. Where namespaces trust each other, all count.
func (e *MassEvidence) For(namespace string, trust bool) (machines, unhealthy map[string]int) {
	machines, unhealthy = make(map[string]int), make(map[string]int)
	believed := func(sums map[string]*sum, rehearsed Counts, to ...map[string]int) {
		for domain, s := range sums {
			n := s.believed(namespace)
			if trust {
				n = s.all
			}
			for _, counts := range to {
				counts[domain] += n
			}
		}
		for domain, n := range rehearsed[Party{Namespace: namespace, DryRun: true}] {
			for _, counts := range to {
				counts[domain] += n
			}
		}
	}
	believed(e.healthy, e.rehearsed[0], machines)
	believed(e.unhealthy, e.rehearsed[1], machines, unhealthy)
	return machines, unhealthy
}

// Use is what one namespace uses of the limits of the fleet.
type Use struct {
	// Active are its remediations in progress, by failure domain.
	Active map[string]int
	// Begun are when remediations were begun, within the window, and Last is when it began something last.
	Begun []time.Time
	Last  time.Time
	// Waits are the limits that it waits for.
	Waits map[Limit]bool
}

// Limit of the fleet that a decision waits for: its rule, and the failure domain for one of those.
type Limit struct{ Rule, Domain string }

// The rules of the limits that all namespaces share.
const (
	ruleFleetAtOnce  = "fleet-at-once"
	ruleFleetWindow  = "fleet-window"
	ruleDomainAtOnce = "failure-domain-at-once"
	ruleShare        = "namespace-share"
)

// OfLimit says whether a rule is that of a limit of the policy or of all namespaces: a machine waits until others are repaired.
func OfLimit(rule string) bool {
	return slices.Contains([]string{ruleAtOnce, ruleWindow, ruleFleetAtOnce, ruleFleetWindow, ruleDomainAtOnce}, rule)
}

// Awaited are the limits of the fleet that an owner's machines wait for.
func Awaited(s *State) []Limit {
	var limits []Limit
	for _, u := range s.unhealthy() {
		switch u.Decision.Rule {
		case ruleFleetAtOnce, ruleFleetWindow, ruleDomainAtOnce:
			if u.Mark != nil && u.Decision.Verdict == Wait {
				limits = append(limits, Limit{u.Decision.Rule, u.Decision.Domain})
			}
		}
	}
	return limits
}

// ahead counts the other namespaces that wait for a limit and come first: those that use less of it, and of those that use as much
// the ones that began something longer ago.
func (f *Fleet) ahead(namespace string, limit Limit) int {
	own, n := f.Uses[namespace], 0
	for name, other := range f.Uses {
		if name == namespace || !other.Waits[limit] {
			continue
		}
		if a, b := other.of(limit), own.of(limit); a < b || a == b && other.Last.Before(own.Last) {
			n++
		}
	}
	return n
}

// of is how much of a limit is used.
func (u Use) of(limit Limit) int {
	switch limit.Rule {
	case ruleDomainAtOnce:
		return u.Active[limit.Domain]
	case ruleFleetWindow:
		return len(u.Begun)
	default:
		return Total(u.Active)
	}
}

// share is how much of a limit one namespace may use.
func (f *Fleet) share(limit int) int {
	if f.Limits.Share == 0 || f.Alone {
		return limit
	}
	return (limit*f.Limits.Share + 99) / 100
}

// bounded applies a limit that namespaces share; nil when it allows one more. used is what all use of it, own what this
// namespace does.
func (f *Facts) bounded(l Limit, limit, used, own int, what string) *Decision {
	if limit <= 0 {
		return nil
	}
	var d *Decision
	share, ahead := f.Fleet.share(limit), f.Fleet.ahead(f.Owner.Namespace, l)
	switch {
	case used >= limit:
		d = ask(l.next(l.field()), l.Rule, "%d or more remediations %s, the limit of the fleet", limit, what)
	case own >= share:
		d = ask(l.next("namespaceShare"), ruleShare, "%d or more remediations of namespace %s %s: it may use no more of the limit of the fleet, which is %d", share, f.Owner.Namespace, what, limit)
	case used+ahead >= limit:
		d = ask("wait: each of them comes first once; or raise "+l.field()+" of RepairLimits default",
			l.Rule, "other namespaces come first: they use less of the limit of the fleet, or wait for longer")
	default:
		return nil
	}
	d.Domain = l.Domain
	return d
}

// next says what to do where the limit is used up; field of RepairLimits may be raised.
func (l Limit) next(field string) string {
	what := nextPlaces
	if l.Rule == ruleFleetWindow {
		what = "wait (`scutectl get machines` says until when)"
	}
	return what + "; or raise " + field + " of RepairLimits default"
}

// field of RepairLimits that sets the limit.
func (l Limit) field() string {
	switch l.Rule {
	case ruleDomainAtOnce:
		return "failureDomains.atOnce"
	case ruleFleetWindow:
		return "perWindow"
	default:
		return "atOnce"
	}
}
