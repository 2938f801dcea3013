package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/remediator"
	"scute.dev/ui/feed"
)

// machineCase is a machine that was marked as unhealthy, with the last decision about the machine.
type machineCase struct {
	chip
	Remediation                   *v1alpha1.SurgeRemediation
	Decision, Rule, Because, Seen string
	Decided                       time.Time
	Open                          bool
	Commands                      []string
	Acts                          []actionLink
}

type ownerPage struct {
	subject
	Owner  remediator.Owner
	Holder string
	Active []*remediator.Active
	Cases  []machineCase
	Mass   []string
	Pauses []holder
}

func owner(v *view) (any, error) {
	id := v.Query.Get("id")
	f, err := feed.Find[*remediation.Fold](v.Snapshot, eventlog.KindRemediation, id)
	if err != nil {
		return nil, err
	}
	p := ownerPage{Owner: f.State.Owner, Holder: f.State.Holder, Active: f.State.InProgress(), Mass: massFailureWaits(&f.State), Cases: v.cases(f)}
	p.Pauses = v.holders()[p.Owner.Namespace+"/"+p.Owner.Cluster]
	v.Title = p.Owner.Kind + " " + p.Owner.Name
	p.subject, err = v.about(nil, nil)
	p.Acts = v.policyActions(p.Owner.Namespace, p.Cases)
	return p, err
}

// massFailureWaits returns the places of mass failures that block the remediation of an owner's
// machines: failure domains, the fleet, or a policy's namespace.
func massFailureWaits(s *remediator.State) (out []string) {
	for domain, waits := range s.Mass.Pending {
		if waits {
			out = append(out, cmp.Or(domain, "the fleet"))
		}
	}
	if s.InMassFailure {
		out = append(out, "a policy of namespace "+s.Owner.Namespace)
	}
	slices.Sort(out)
	return out
}

// cases returns the cases of an owner's machines, open cases first.
func (v *view) cases(f *remediation.Fold) (out []machineCase) {
	for _, r := range f.Items() {
		c := machineCase{chip: newChip(r.Status.Phase), Remediation: r, Open: remediation.IsOpen(r)}
		c.setDecision(&f.State, r.Name)
		if c.Open {
			c.Commands, c.Acts = v.commands(remediation.Hints(v.site.kit, r)), v.acts(remediation.Actions(r))
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b machineCase) int {
		if a.Open != b.Open {
			return map[bool]int{true: -1, false: 1}[a.Open]
		}
		return b.Remediation.CreationTimestamp.Compare(a.Remediation.CreationTimestamp.Time)
	})
	return out
}

func (c *machineCase) setDecision(s *remediator.State, machine string) {
	for _, past := range s.History {
		if past.Victim.Name == machine {
			c.setEvidence(past.Decision, past.Evidence, past.StartedAt)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.Unhealthy)) {
		if u := s.Unhealthy[uid]; u.Name == machine && u.Decision.Verdict != "" {
			c.setEvidence(u.Decision, u.Evidence, u.DecidedAt)
		}
	}
}

func (c *machineCase) setEvidence(d remediator.Decision, seen remediator.Evidence, at time.Time) {
	if d.Verdict == "" {
		return
	}
	c.Decision, c.Rule, c.Because, c.Seen, c.Decided = d.Words(), d.Rule, d.Reason, seen.Text(), at
}

type ownerRow struct {
	chip
	Link, Owner, Cluster string
	Open, Ended          int
	Worst                string
	Quorum               *v1alpha1.QuorumStatus
	Mass, Limits         []string
}

type clusterRow struct {
	Name   string
	Pauses []holder
	Owners []ownerRow
}

type fleetPage struct {
	Clusters []clusterRow // one page of the list
	Of       position
	Open     int
	Mass     []string
	// Limits is the number of machines that wait for an exhausted limit, by the rule of the limit.
	Limits map[string]int
}

func fleet(v *view) (any, error) {
	v.Title = "Fleet"
	p := fleetPage{Limits: make(map[string]int)}
	byName, holders := make(map[string]*clusterRow), v.holders()
	for a, f := range feed.All[*remediation.Fold](v.Snapshot) {
		h := v.health(a, f)
		for _, rule := range h.Limits {
			p.Limits[rule]++
		}
		name := f.State.Owner.Namespace + "/" + f.State.Owner.Cluster
		if byName[name] == nil {
			byName[name] = &clusterRow{Name: name, Pauses: holders[name]}
		}
		byName[name].Owners = append(byName[name].Owners, h)
		p.Open, p.Mass = p.Open+h.Open, append(p.Mass, h.Mass...)
	}
	for _, c := range byName {
		slices.SortFunc(c.Owners, func(a, b ownerRow) int { return cmp.Compare(a.Owner, b.Owner) })
		p.Clusters = append(p.Clusters, *c)
	}
	open := func(c clusterRow) (n int) {
		for _, h := range c.Owners {
			n += h.Open
		}
		return n
	}
	slices.SortFunc(p.Clusters, func(a, b clusterRow) int { return cmp.Or(cmp.Compare(open(b), open(a)), cmp.Compare(a.Name, b.Name)) })
	slices.Sort(p.Mass)
	p.Mass = slices.Compact(p.Mass)
	var err error
	p.Clusters, p.Of, err = paged(v, longList{Param: "page", Label: "Pages of the clusters", Rows: rowsPerPage}, p.Clusters)
	return p, err
}

func (v *view) health(a eventlog.Aggregate, f *remediation.Fold) ownerRow {
	o := f.State.Owner
	h := ownerRow{
		chip: chip{kit.ToneOf("Succeeded"), "well"}, Link: v.link(a), Owner: o.Kind + " " + o.Name, Cluster: o.Cluster, Mass: massFailureWaits(&f.State),
	}
	for _, c := range v.cases(f) {
		if !c.Open {
			h.Ended++
			continue
		}
		h.Open++
		if remediator.OfLimit(c.Rule) {
			h.Limits = append(h.Limits, c.Rule)
		}
		if h.Open == 1 { // newest first
			h.chip, h.Worst, h.Quorum = c.chip, fmt.Sprintf("%s: %s", c.Remediation.Name, c.Remediation.Status.Message), c.Remediation.Status.Quorum
		}
	}
	return h
}
