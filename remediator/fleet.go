package remediator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/view"
)

// Fleet contains the limits of the whole fleet, and the numbers of remediations in progress and of
// machines as they count for one namespace. Counts are by failure domain, except Watched. Machines
// without a failure domain count under "".
type Fleet struct {
	Limits FleetLimits
	// Selected are the numbers of machines that policies select. They must not be changed.
	Selected NamespaceCounts
	// Watched is the number of machines that each policy selects, by namespace/name. It must not be changed.
	Watched map[string]int
	// Machines are the numbers of machines of all owners that policies select.
	Machines map[string]int
	// Unhealthy are the numbers of marked machines of all owners, including this one.
	Unhealthy map[string]int
	// Active are the numbers of remediations in progress of other owners, by the failure domain of the machine.
	Active map[string]int
	// Starts are the times within the window at which remediations of other owners were started.
	Starts []time.Time
	// MassFailuresEnded contains the time at which the last mass failure of each failure domain
	// ended and, under the key wholeFleet, the time at which the last mass failure of the fleet
	// ended.
	MassFailuresEnded map[string]time.Time
	// FailingDomains contains the failure domains that have a mass failure by the counts for any
	// namespace, and wholeFleet if the fleet has one. If it is nil, Failing and FleetFailing use
	// the counts for the one namespace.
	FailingDomains map[string]bool
}

// CountsFor is how long a remediation in progress counts toward the limits of the fleet and of the
// other owners of its policy. A remediation that takes longer waits for an operator, and must not
// block other machines.
const CountsFor = 4 * time.Hour

// wholeFleet is the key of the whole fleet in maps by failure domain.
const wholeFleet = ""

// FleetLimits contains the limits of the RepairLimits, with the defaults. A limit of 0 means no
// limit.
type FleetLimits struct {
	// Unreadable is why the RepairLimits cannot be read, or "". If it is set, no other field is.
	Unreadable string
	Paused     []string
	// AtOnce limits the remediations in progress. PerWindow limits the remediations started within
	// Window.
	AtOnce, PerWindow int
	Window            time.Duration
	Mass              MassFailure
	// DomainAtOnce and DomainMass apply to each failure domain.
	DomainAtOnce int
	DomainMass   MassFailure
}

// MassFailure defines how many machines must be unhealthy at once for a mass failure: at least
// Floor, and at least Percent percent. After the mass failure, nothing starts for Cooldown.
type MassFailure struct {
	Percent, Floor int
	Cooldown       time.Duration
}

func (l MassFailure) reached(unhealthy, machines int) bool {
	return l.Percent > 0 && unhealthy >= l.Floor && unhealthy*100 >= l.Percent*max(machines, unhealthy)
}

// Failing reports whether a failure domain has a mass failure. It is false for wholeFleet.
func (f *Fleet) Failing(domain string) bool {
	if f.FailingDomains != nil {
		return domain != wholeFleet && f.FailingDomains[domain]
	}
	return domain != wholeFleet && f.Limits.DomainMass.reached(f.Unhealthy[domain], f.Machines[domain])
}

// FleetFailing reports whether the fleet has a mass failure. It does not count machines of failing
// failure domains, because their common cause is known, and remediations continue in the rest of
// the fleet.
func (f *Fleet) FleetFailing() bool {
	if f.FailingDomains != nil {
		return f.FailingDomains[wholeFleet]
	}
	unhealthy, machines := f.countOutsideFailing()
	return f.Limits.Mass.reached(unhealthy, machines)
}

// AddFailing adds to a set the failing failure domains, and wholeFleet if the fleet has a mass
// failure.
func (f *Fleet) AddFailing(to map[string]bool) {
	for domain := range f.Unhealthy {
		if f.Failing(domain) {
			to[domain] = true
		}
	}
	if f.FleetFailing() {
		to[wholeFleet] = true
	}
}

func (f *Fleet) countOutsideFailing() (unhealthy, machines int) {
	for domain, n := range f.Machines {
		if !f.Failing(domain) {
			machines += n
		}
	}
	for domain, n := range f.Unhealthy {
		if !f.Failing(domain) {
			unhealthy += n
		}
	}
	return unhealthy, machines
}

// Total returns the sum over all failure domains.
func Total(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// checkFleetLimits applies the limits of the fleet. It returns nil if they permit a start.
func (s *State) checkFleetLimits(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits
	if l.Unreadable != "" {
		return freeze("correct RepairLimits default", ruleUnreadableLimits, "RepairLimits default cannot be read: %s; nothing starts", l.Unreadable)
	}
	if d := cmp.Or(s.checkMassFailure(f, now), s.checkDestination(u, m, f, now)); d != nil {
		return d
	}
	domain := f.domain(m.FailureDomain)
	var busy map[string]int // by this owner; the facts contain the others
	if s.Active != nil {
		busy = UsageOf(s, f).Active
	}
	reached := func(limit, used int) bool { return limit > 0 && used >= limit }
	switch {
	case domain != "" && reached(l.DomainAtOnce, f.Fleet.Active[domain]+busy[domain]):
		d := waitForHuman(nextAtLimit("failureDomains.atOnce of RepairLimits default"),
			ruleDomainAtOnce, "%d or more remediations are in progress in failure domain %s, the limit of the fleet", l.DomainAtOnce, domain)
		d.Domain = domain
		return d
	case reached(l.AtOnce, Total(f.Fleet.Active)+Total(busy)):
		return waitForHuman(nextAtLimit("atOnce of RepairLimits default"), ruleFleetAtOnce, "%d or more remediations are in progress, the limit of the fleet", l.AtOnce)
	case !u.alreadyCounted() && reached(l.PerWindow, len(within(slices.Concat(s.Starts, f.Fleet.Starts), l.Window, now))):
		return waitForHuman("wait (`scutectl get machines` shows until when), or raise perWindow of RepairLimits default",
			ruleFleetWindow, "%d or more remediations started within %s, the limit of the fleet", l.PerWindow, view.Duration(l.Window))
	default:
		return nil
	}
}

func (s *State) checkMassFailure(f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits.Mass
	if f.Fleet.FleetFailing() {
		unhealthy, machines := f.Fleet.countOutsideFailing()
		return waitForHuman("look for the common cause", ruleMassFailure,
			"a mass failure of the fleet: %d of %d machines are unhealthy at once; nothing starts while it is %d %% or more, and for %s after that",
			unhealthy, machines, l.Percent, view.Duration(l.Cooldown))
	}
	if end := s.domainCooldownEnd(f, wholeFleet, l); now.Before(end) {
		return wait(ruleMassFailureCooldown, "a mass failure of the fleet has ended; nothing starts before %s", utc(end))
	}
	return nil
}

// checkDestination returns a wait if the replacement would be created in a failure domain that has
// a mass failure, or is in the cooldown after one. It uses the method that applies once a wait for
// the components of other machines has expired, so that the result does not change with time alone.
func (s *State) checkDestination(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	method := s.chooseMethod(u, m, f, now.Add(f.Policy.Timeouts.ScaleUp))
	return s.checkDomains(f.destinations(m, method.Verdict), f, now)
}

// noDestination reports whether every method would create the replacement in a failure domain that
// has a mass failure, or is in the cooldown after one.
func (s *State) noDestination(m *Machine, f *Facts, now time.Time) bool {
	for _, method := range []Verdict{OwnerRemediation, RolloutSurge, Surge} {
		if s.checkDomains(f.destinations(m, method), f, now) == nil {
			return false
		}
	}
	return true
}

// checkDomains returns a wait for the first of the named failure domains that has a mass failure,
// or is in the cooldown after one. It returns nil if there is none.
func (s *State) checkDomains(names []string, f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits.DomainMass
	for _, name := range names {
		domain := f.domain(name)
		end := s.domainCooldownEnd(f, domain, l)
		switch {
		case f.Fleet.Failing(domain):
			unhealthy := f.Fleet.Unhealthy[domain]
			elsewhere := fmt.Sprintf("scale %s down and another owner up", f.Owner.Name)
			if f.isControlPlane() {
				elsewhere = "remove it from the failure domains of cluster " + f.Owner.Cluster
			}
			d := waitForHuman("find out what is wrong in "+name+"; if it does not come back, "+elsewhere, ruleFailureDomain, "the replacement would be created in failure domain %s, where %d of %d machines are unhealthy; nothing is created there while it is %d %% or more, and for %s after that",
				domain, unhealthy, max(unhealthy, f.Fleet.Machines[domain]), l.Percent, view.Duration(l.Cooldown))
			d.Domain = domain
			return d
		case now.Before(end):
			d := wait(ruleDomainCooldown, "the replacement would be created in failure domain %s, whose mass failure has ended; nothing is created there before %s", domain, utc(end))
			d.Domain = domain
			return d
		}
	}
	return nil
}

// domainCooldownEnd returns when the cooldown after the last mass failure of a failure domain ends,
// or zero if there was none. Only mass failures for which an owner waited count.
func (s *State) domainCooldownEnd(f *Facts, domain string, l MassFailure) time.Time {
	passed := later(f.Fleet.MassFailuresEnded[domain], s.Mass.Ended[domain])
	return dueIf(!passed.IsZero(), passed.Add(l.Cooldown))
}

// Domain returns the name of a failure domain that is unique among all regions; "" for none.
func Domain(region, name string) string {
	if name == "" || region == "" {
		return name
	}
	return region + "/" + name
}

func (f *Facts) domain(name string) string { return Domain(f.Cluster.Region, name) }

// destinations returns the failure domains in which a method may create the replacement of a
// machine. A control plane chooses a failure domain with the fewest up-to-date machines and, among
// these, with the fewest machines (util/failuredomains in Cluster API). Every other owner creates
// the replacement in the failure domain of the machine.
func (f *Facts) destinations(m *Machine, method Verdict) []string {
	if !f.isControlPlane() {
		return slices.DeleteFunc([]string{m.FailureDomain}, func(name string) bool { return name == "" })
	}
	type load struct{ upToDate, all int }
	loads := make(map[string]load, len(f.Cluster.FailureDomains))
	for other := range f.all() {
		victim := other.UID == m.UID
		if victim && method == OwnerRemediation {
			continue // the owner deletes it first
		}
		stays := !other.Deleting && other.Conditions[clusterv1.MachineUpToDateCondition].Status != object.False && (!victim || method == Surge)
		loads[other.FailureDomain] = load{loads[other.FailureDomain].upToDate + boolToInt(stays), loads[other.FailureDomain].all + 1}
	}
	names := slices.Sorted(slices.Values(f.Cluster.FailureDomains))
	if len(names) == 0 {
		return nil
	}
	fewest := loads[slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(loads[a].upToDate, loads[b].upToDate), cmp.Compare(loads[a].all, loads[b].all))
	})]
	return slices.DeleteFunc(names, func(name string) bool { return loads[name] != fewest })
}

// massFailures records the mass failures of the fleet and of failure domains that one owner waited for.
type massFailures struct {
	// Pending contains the failure domains whose mass failure has not passed.
	Pending map[string]bool
	// Ended contains the time at which the last mass failure passed, by failure domain, if it is
	// within a day.
	Ended map[string]time.Time
}

func (k *massFailures) recordWait(d Decision) {
	if d.Rule == ruleMassFailure || d.Rule == ruleFailureDomain {
		put(&k.Pending, d.Domain, true)
	}
}

func (k *massFailures) recordEnd(domain string, at time.Time) {
	delete(k.Pending, domain)
	maps.DeleteFunc(k.Ended, func(_ string, passed time.Time) bool { return at.Sub(passed) > 24*time.Hour })
	put(&k.Ended, domain, at)
}

// endPolicyMassFailure returns an event if this owner waited for a mass failure of its policy to
// end, and it has ended.
func endPolicyMassFailure(s *State, f *Facts, _ time.Time) []Event {
	return eventIf(s.InMassFailure && !f.inMassFailure() && f.Policy.Unreadable == "", PolicyMassFailurePassed{})
}

// inMassFailure reports whether enough machines of the policy are unhealthy for a mass failure.
func (f *Facts) inMassFailure() bool {
	return f.Policy.Name != "" && f.Policy.Unreadable == "" && f.Policy.Limits.MassFailure.reached(f.Ledger.Unhealthy, f.Ledger.Watched)
}

// endMassFailures returns an event for each mass failure of the fleet or a failure domain for which
// this owner waited, and that has passed.
func endMassFailures(s *State, f *Facts, _ time.Time) []Event {
	if f.Policy.Unreadable != "" || f.Fleet.Limits.Unreadable != "" {
		return nil
	}
	var events []Event
	for _, domain := range slices.Sorted(maps.Keys(s.Mass.Pending)) {
		if !f.Fleet.Failing(domain) && (domain != wholeFleet || !f.Fleet.FleetFailing()) {
			events = append(events, MassFailurePassed{Domain: domain})
		}
	}
	return events
}

// IsStart reports whether an event starts a replacement or an escalation step, which counts toward
// the limits of the fleet.
func IsStart(e Event) bool {
	switch e.(type) {
	case SurgeRequested, HandedOver, EscalationStarted:
		return true
	default:
		return false
	}
}

// Usage contains the numbers of unhealthy machines and of remediations in progress of one owner, by
// failure domain. Machines that are only marked because of a notice do not count. An escalation
// step counts as a remediation.
type Usage struct {
	Unhealthy, Active map[string]int
	// Since is the time at which the latest of the remediations in progress was started.
	Since time.Time
}

// UsageOf returns the usage of an owner. It uses the failure domains in the facts instead of those
// in the log, because the region of a cluster may have been set after they were recorded. f may be
// nil.
func UsageOf(s *State, f *Facts) Usage {
	t := Usage{Unhealthy: make(map[string]int), Active: make(map[string]int)}
	for _, u := range s.unhealthy() {
		if u.failed() {
			t.Unhealthy[f.domainOf(u.Subject, u.Mark.FailureDomain)]++
		}
	}
	for _, a := range s.InProgress() {
		t.Active[f.domainOf(a.Victim, a.FailureDomain)]++
		t.Since = a.StartedAt
	}
	if u := s.escalating(); u != nil && s.Active == nil {
		t.Active[f.domainOf(u.Subject, u.Mark.FailureDomain)]++
		t.Since = u.EscalationSince
	}
	return t
}

// domainOf returns the failure domain of a machine, or the recorded one if the facts do not have
// the machine. The facts may be nil.
func (f *Facts) domainOf(machine Subject, recorded string) string {
	if f != nil {
		if m := f.machine(machine); m != nil {
			return f.domain(m.FailureDomain)
		}
	}
	return recorded
}
