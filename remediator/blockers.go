package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// InFlight is a remediation in progress that counts for a limit.
type InFlight struct {
	Namespace, Policy, Machine, Domain string
	// Since is when the remediation was started. It counts for CountsFor, and for the machine's own owner until it has ended.
	Since time.Time
}

func (s *State) inFlight(since time.Time) (list []InFlight) {
	policy, _ := PolicyOf(s)
	add := func(machine, domain string) {
		list = append(list, InFlight{Namespace: s.Owner.Namespace, Policy: policy, Machine: machine, Domain: domain, Since: since})
	}
	for _, a := range s.InProgress() {
		add(a.Victim.Name, a.FailureDomain)
	}
	if u := s.escalating(); u != nil && len(list) == 0 {
		add(u.Name, u.Mark.FailureDomain)
	}
	return list
}

// blockers returns the remediations whose limit this machine waits on, the longest-counting first, and when the first one stops counting; zero if
// none does by time alone. It returns none if the machine waits for something else.
func (s *State) blockers(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) (list []InFlight, opens time.Time) {
	policy, fleet := f.Owner.Namespace+"/"+f.Policy.Name, f.Fleet.Limits
	switch u.Decision.Rule {
	case ruleAtOnce:
		return s.atLimit(f, f.Policy.Limits.AtOnce, now, func(p InFlight) bool { return p.Policy == policy })
	case ruleFleetAtOnce:
		return s.atLimit(f, fleet.AtOnce, now, func(InFlight) bool { return true })
	case ruleDomainAtOnce:
		return s.atLimit(f, fleet.DomainAtOnce, now, func(p InFlight) bool { return m != nil && p.Domain == f.domain(m.FailureDomain) })
	default:
		return nil, time.Time{}
	}
}

// atLimit returns the remediations that count for an exhausted limit, and when the limit permits another one even if nothing else changes.
func (s *State) atLimit(f *Facts, limit int, now time.Time, counts func(InFlight) bool) (list []InFlight, opens time.Time) {
	own := slices.DeleteFunc(s.inFlight(UsageOf(s, f).Since), func(p InFlight) bool { return !counts(p) })
	var since []time.Time
	for _, p := range f.Fleet.InFlight {
		if counts(p) {
			list, since = append(list, p), append(since, p.Since)
		}
	}
	slices.SortFunc(list, func(a, b InFlight) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Machine, b.Machine))
	})
	if list = append(list, own...); limit <= 0 || len(list) < limit {
		return nil, time.Time{}
	}
	return list, NextStart(since, limit-len(own), CountsFor, now)
}

// describeInFlight names at most three remediations, and when each was started.
func describeInFlight(list []InFlight) string {
	const most = 3
	var told []string
	for _, p := range list[:min(len(list), most)] {
		told = append(told, fmt.Sprintf("%s/%s since %s", p.Namespace, p.Machine, utc(p.Since)))
	}
	if more := len(list) - most; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(told, ", ")
}
