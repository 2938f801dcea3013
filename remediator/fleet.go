package remediator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/internal/timespan"
	"scute.dev/kube/object"
)

// Fleet is what all policies together have in progress and have seen, as one namespace takes it, and the limits that hold for all
// of them. Machines are counted by failure domain, those without one under "".
type Fleet struct {
	Limits FleetLimits
	// Selected are the machines that policies select. They are not changed.
	Selected NamespaceCounts
	// Watched is how many of them each policy selects, by namespace/name. It is not changed.
	Watched map[string]int
	// Machines that policies select, of all owners.
	Machines map[string]int
	// Unhealthy are the machines that are marked, of all owners, this one's too.
	Unhealthy map[string]int
	// Active are the remediations in progress, this owner's not counted, by the failure domain of the machine.
	Active map[string]int
	// Begun are when remediations of other owners were begun, within the window.
	Begun []time.Time
	// InFlight are the remediations in progress of other owners, for a tool that has read the log: see CountBegun.
	InFlight []InFlight
	// Passed is when the last mass failure of a failure domain ended, and under wholeFleet that of the fleet.
	Passed map[string]time.Time
	// Fails says which failure domains fail for some namespace, and under wholeFleet whether the fleet does. Nil: for the one whose
	// counts these are.
	Fails map[string]bool
}

// CountsFor is how long a remediation in progress counts for the limits of the fleet, and for the other owners of its policy. One that
// takes longer waits for something that people see to; that does not keep others waiting.
const CountsFor = 4 * time.Hour

// wholeFleet means no single failure domain.
const wholeFleet = ""

// FleetLimits are those of the RepairLimits, with the defaults in place. A limit of 0 does not limit.
type FleetLimits struct {
	// Unreadable says why the RepairLimits cannot be read, "" when it can. Then nothing else of it is known.
	Unreadable string
	Paused     []string
	// AtOnce bounds remediations in progress, PerWindow those begun within Window.
	AtOnce, PerWindow int
	Window            time.Duration
	Mass              MassFailure
	// Of each failure domain by itself.
	DomainAtOnce int
	DomainMass   MassFailure
}

// MassFailure says when so many machines are unhealthy at once that something bigger is broken.
type MassFailure struct {
	Percent, Floor int
	Cooldown       time.Duration
}

func (l MassFailure) reached(unhealthy, machines int) bool {
	return l.Percent > 0 && unhealthy >= l.Floor && unhealthy*100 >= l.Percent*max(machines, unhealthy)
}

// Failing says that a failure domain has a mass failure.
func (f *Fleet) Failing(domain string) bool {
	if f.Fails != nil {
		return domain != wholeFleet && f.Fails[domain]
	}
	return domain != wholeFleet && f.Limits.DomainMass.reached(f.Unhealthy[domain], f.Machines[domain])
}

// FailingAtLarge says that the fleet has a mass failure. Machines of a failure domain that fails by itself are not counted:
// what is wrong with them is known, and the rest of the fleet is looked after.
func (f *Fleet) FailingAtLarge() bool {
	if f.Fails != nil {
		return f.Fails[wholeFleet]
	}
	unhealthy, machines := f.elsewhere()
	return f.Limits.Mass.reached(unhealthy, machines)
}

// Failures adds what fails: failure domains, and under wholeFleet the fleet.
func (f *Fleet) Failures(to map[string]bool) {
	for domain := range f.Unhealthy {
		if f.Failing(domain) {
			to[domain] = true
		}
	}
	if f.FailingAtLarge() {
		to[wholeFleet] = true
	}
}

// elsewhere counts the machines of the fleet that are in no failure domain that fails.
func (f *Fleet) elsewhere() (unhealthy, machines int) {
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

// Total of the counts of all failure domains.
func Total(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// fleetAllows applies the limits of the whole fleet; nil when they allow to begin something.
func (s *State) fleetAllows(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits
	if l.Unreadable != "" {
		return &Decision{Verdict: Freeze, Rule: ruleUnreadableLimits, Reason: "RepairLimits default cannot be read: " + l.Unreadable + "; nothing is begun", Next: "correct RepairLimits default"}
	}
	if d := s.massFailure(f, now); d != nil {
		return d
	}
	if d := s.destination(u, m, f, now); d != nil {
		return d
	}
	domain := f.domain(m.FailureDomain)
	var busy map[string]int // this owner's: those of others are in the facts
	if s.Active != nil {
		busy = UsageOf(s, f).Active
	}
	reached := func(limit, used int) bool { return limit > 0 && used >= limit }
	switch {
	case domain != "" && reached(l.DomainAtOnce, f.Fleet.Active[domain]+busy[domain]):
		d := ask(nextAtLimit+"; or raise failureDomains.atOnce of RepairLimits default",
			ruleDomainAtOnce, "%d or more remediations are in progress in failure domain %s, the limit of the fleet", l.DomainAtOnce, domain)
		d.Domain = domain
		return d
	case reached(l.AtOnce, Total(f.Fleet.Active)+Total(busy)):
		return ask(nextAtLimit+"; or raise atOnce of RepairLimits default", ruleFleetAtOnce, "%d or more remediations are in progress, the limit of the fleet", l.AtOnce)
	case !u.counted() && reached(l.PerWindow, len(within(slices.Concat(s.Starts, f.Fleet.Begun), l.Window, now))):
		return ask("wait (`scutectl get machines` says until when); or raise perWindow of RepairLimits default",
			ruleFleetWindow, "%d or more remediations were begun within %s, the limit of the fleet", l.PerWindow, timespan.Text(l.Window))
	default:
		return nil
	}
}

// massFailure waits while the fleet has one, and for a while after it.
func (s *State) massFailure(f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits.Mass
	if f.Fleet.FailingAtLarge() {
		unhealthy, machines := f.Fleet.elsewhere()
		d := wait(ruleMassFailure, "%d of %d machines of the fleet are unhealthy at once: something bigger is broken, nothing is begun while it is %d %% or more, and for %s after that",
			unhealthy, machines, l.Percent, timespan.Text(l.Cooldown))
		d.Next = "find what is broken at large"
		return d
	}
	if end := s.calmUntil(f, wholeFleet, l); now.Before(end) {
		return wait(ruleMassFailureCooldown, "a mass failure of the fleet has passed; nothing is begun before %s", end.UTC().Format(time.RFC3339))
	}
	return nil
}

// destination waits while a replacement would be made in a failure domain that fails, and for a while after it. That is judged by the method
// at the end of a wait for the components of others, so that it does not change with the time alone.
func (s *State) destination(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	method := s.method(u, m, f, now.Add(f.Policy.Timeouts.ScaleUp))
	return s.failingOf(f.destinations(m, method.Verdict), f, now)
}

// nowhere says that a replacement would be made in a failure domain that fails, or failed recently, by whatever method.
func (s *State) nowhere(m *Machine, f *Facts, now time.Time) bool {
	for _, method := range []Verdict{OwnerRemediation, RolloutSurge, Surge} {
		if s.failingOf(f.destinations(m, method), f, now) == nil {
			return false
		}
	}
	return true
}

// failingOf waits for the first of some failure domains that fails, or failed recently; nil when none does.
func (s *State) failingOf(names []string, f *Facts, now time.Time) *Decision {
	l := f.Fleet.Limits.DomainMass
	for _, name := range names {
		domain := f.domain(name)
		end := s.calmUntil(f, domain, l)
		switch {
		case f.Fleet.Failing(domain):
			unhealthy := f.Fleet.Unhealthy[domain]
			d := wait(ruleFailureDomain, "the replacement would be made in failure domain %s, where %d of %d machines are unhealthy: nothing is sent there while it is %d %% or more, and for %s after that",
				domain, unhealthy, max(unhealthy, f.Fleet.Machines[domain]), l.Percent, timespan.Text(l.Cooldown))
			d.Domain, d.Next = domain, f.elude(name)
			return d
		case now.Before(end):
			d := wait(ruleDomainCooldown, "the replacement would be made in failure domain %s, whose mass failure has passed; nothing is sent there before %s", domain, end.UTC().Format(time.RFC3339))
			d.Domain = domain
			return d
		}
	}
	return nil
}

// elude says what to do about a failure domain that does not recover.
func (f *Facts) elude(domain string) string {
	if f.isControlPlane() {
		return fmt.Sprintf("see what is wrong in %s; if it stays so, take it out of the failure domains of cluster %s: the replacement is made in another then", domain, f.Owner.Cluster)
	}
	return fmt.Sprintf("see what is wrong in %s; if it stays so, scale %s %s down and another one up", domain, f.Owner.Kind, f.Owner.Name)
}

// calmUntil returns when the cooldown after the last mass failure that this owner or another one waited for is over; zero if there was none.
func (s *State) calmUntil(f *Facts, domain string, l MassFailure) time.Time {
	passed := later(f.Fleet.Passed[domain], s.Mass.Passed[domain])
	return dueIf(!passed.IsZero(), passed.Add(l.Cooldown))
}

// Domain is the name of a failure domain among those of all regions; "" for none.
func Domain(region, name string) string {
	if name == "" || region == "" {
		return name
	}
	return region + "/" + name
}

func (f *Facts) domain(name string) string { return Domain(f.Cluster.Region, name) }

// destinations are the failure domains of which the owner may choose one for the replacement of a machine. A control plane
// takes the one with the fewest machines that are up to date, and among those that with the fewest machines at all; which of
// several is chance (util/failuredomains in Cluster API). The machines of another owner are where the machine is.
func (f *Facts) destinations(m *Machine, method Verdict) []string {
	if !f.isControlPlane() {
		return slices.DeleteFunc([]string{m.FailureDomain}, func(name string) bool { return name == "" })
	}
	type load struct{ upToDate, all int }
	loads := make(map[string]load, len(f.Cluster.FailureDomains))
	for other := range f.all() {
		victim := other.UID == m.UID
		if victim && method == OwnerRemediation {
			continue // it is deleted first
		}
		stays := !other.Deleting && other.Conditions[clusterv1.MachineUpToDateCondition].Status != object.False && (!victim || method == Surge)
		loads[other.FailureDomain] = load{loads[other.FailureDomain].upToDate + count(stays), loads[other.FailureDomain].all + 1}
	}
	var fewest []string
	for _, name := range f.Cluster.FailureDomains {
		l := loads[name]
		if len(fewest) > 0 {
			if best := loads[fewest[0]]; l.upToDate > best.upToDate || l.upToDate == best.upToDate && l.all > best.all {
				continue
			} else if l != best {
				fewest = nil
			}
		}
		fewest = append(fewest, name)
	}
	slices.Sort(fewest)
	return fewest
}

// MassFailures are what one owner knows of those of the fleet and of failure domains.
type MassFailures struct {
	// Waited says for which a machine of the owner waited, that have not passed.
	Waited map[string]bool
	// Passed is when they passed, of the last day.
	Passed map[string]time.Time
}

// waits remembers what a decision waits for.
func (k *MassFailures) waits(d Decision) {
	if d.Rule != ruleMassFailure && d.Rule != ruleFailureDomain {
		return
	}
	if k.Waited == nil {
		k.Waited = make(map[string]bool)
	}
	k.Waited[d.Domain] = true
}

func (k *MassFailures) passes(domain string, at time.Time) {
	delete(k.Waited, domain)
	maps.DeleteFunc(k.Passed, func(_ string, passed time.Time) bool { return at.Sub(passed) > 24*time.Hour })
	if k.Passed == nil {
		k.Passed = make(map[string]time.Time)
	}
	k.Passed[domain] = at
}

// massFailures says which of those that kept this owner waiting have passed.
func massFailures(s *State, f *Facts, _ time.Time) []Event {
	if f.Policy.Unreadable != "" || f.Fleet.Limits.Unreadable != "" {
		return nil
	}
	var events []Event
	for _, domain := range slices.Sorted(maps.Keys(s.Mass.Waited)) {
		if !f.Fleet.Failing(domain) && (domain != wholeFleet || !f.Fleet.FailingAtLarge()) {
			events = append(events, MassFailurePassed{Domain: domain})
		}
	}
	return events
}

// Begins says that something is begun by an event: it counts for the limits of the fleet.
func Begins(e Event) bool {
	switch e.(type) {
	case SurgeRequested, HandedOver, EscalationStarted:
		return true
	default:
		return false
	}
}

// Usage counts the machines of one owner that are marked because something is wrong with them, and its remediations in progress, by failure
// domain. Escalation steps count as one remediation.
type Usage struct {
	Unhealthy, Active map[string]int
	// Since is when the last remediation in progress was begun.
	Since time.Time
}

// UsageOf returns the usage of an owner. The log has the failure domains of its machines. Facts, if there are any, may know better: the
// region of a cluster may have been set since.
func UsageOf(s *State, f *Facts) Usage {
	where := func(machine Subject, recorded string) string {
		if f != nil {
			if m := f.machine(machine); m != nil {
				return f.domain(m.FailureDomain)
			}
		}
		return recorded
	}
	t := Usage{Unhealthy: make(map[string]int), Active: make(map[string]int)}
	for _, u := range s.unhealthy() {
		if u.Mark == nil {
			continue
		}
		domain := where(u.Subject, u.Mark.FailureDomain)
		if u.failed() {
			t.Unhealthy[domain]++
		}
		if u.EscalationStep != "" && s.Active == nil && len(t.Active) == 0 {
			t.Active[domain]++
			t.Since = u.EscalationSince
		}
	}
	for _, a := range s.InProgress() {
		t.Active[where(a.Victim, a.FailureDomain)]++
		t.Since = a.StartedAt
	}
	return t
}
