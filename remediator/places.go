package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Place is what a remediation in progress has of the limits of what may be in progress at once.
type Place struct {
	Namespace, Policy, Machine, Domain string
	// Since is from when it counts, for CountsFor. That of a machine's own owner counts until it is over.
	Since time.Time
}

// places that an owner's remediations have.
func (s *State) places(since time.Time) []Place {
	policy, _ := PolicyOf(s)
	var places []Place
	place := func(machine, domain string) {
		places = append(places, Place{Namespace: s.Owner.Namespace, Policy: policy, Machine: machine, Domain: domain, Since: since})
	}
	for _, a := range s.InProgress() {
		place(a.Victim.Name, a.FailureDomain)
	}
	if u := s.escalating(); u != nil && len(places) == 0 {
		place(u.Name, u.Mark.FailureDomain)
	}
	return places
}

// awaited are the places that a machine waits for, those that count longest first, and when one of them counts no more though nothing else
// changes, zero for no time. There are none where it waits for anything else.
func (s *State) awaited(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) (places []Place, opens time.Time) {
	policy, fleet := f.Owner.Namespace+"/"+f.Policy.Name, f.Fleet.Limits
	switch u.Decision.Rule {
	case ruleAtOnce:
		return s.full(f, f.Policy.Limits.AtOnce, now, func(p Place) bool { return p.Policy == policy })
	case ruleFleetAtOnce:
		return s.full(f, fleet.AtOnce, now, func(Place) bool { return true })
	case ruleDomainAtOnce:
		return s.full(f, fleet.DomainAtOnce, now, func(p Place) bool { return m != nil && p.Domain == f.domain(m.FailureDomain) })
	default:
		return nil, time.Time{}
	}
}

// full are the places that count for a limit, where it allows no more, and when it does again though nothing else changes.
func (s *State) full(f *Facts, limit int, now time.Time, counts func(Place) bool) (places []Place, opens time.Time) {
	own := slices.DeleteFunc(s.places(UsageOf(s, f).Since), func(p Place) bool { return !counts(p) })
	var since []time.Time
	for _, p := range f.Fleet.Places {
		if counts(p) {
			places, since = append(places, p), append(since, p.Since)
		}
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Machine, b.Machine))
	})
	if places = append(places, own...); limit <= 0 || len(places) < limit {
		return nil, time.Time{}
	}
	return places, Opens(since, limit-len(own), CountsFor, now)
}

// few says which places are taken, and since when: at most three of them.
func few(places []Place) string {
	const most = 3
	var told []string
	for _, p := range places[:min(len(places), most)] {
		told = append(told, fmt.Sprintf("%s/%s since %s", p.Namespace, p.Machine, p.Since.UTC().Format(time.RFC3339)))
	}
	if more := len(places) - most; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(told, ", ")
}
