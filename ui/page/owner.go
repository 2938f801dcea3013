package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/remediator"
	"scute.dev/ui/feed"
)

// Case is a marked machine: its state and decision, with the rule and the facts of the decision.
type Case struct {
	Chip
	Remediation                   *v1alpha1.SurgeRemediation
	Decision, Rule, Because, Seen string
	Decided                       time.Time
	Open                          bool
	Commands                      []string
	Acts                          []ActionLink
}

type ownerPage struct {
	subject
	Owner  remediator.Owner
	Holder string
	Active []*remediator.Active
	Cases  []Case
	Mass   []string
	Pauses []Holder
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

// massFailureWaits returns the mass failures that block machines of an owner.
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

// cases returns the machines of an owner, open cases first.
func (v *view) cases(f *remediation.Fold) (out []Case) {
	for _, r := range f.Items() {
		c := Case{Chip: chip(r.Status.Phase), Remediation: r, Open: remediation.IsOpen(r)}
		if d, seen, at := f.LastDecision(r.Name); d.Verdict != "" {
			c.Decision, c.Rule, c.Because, c.Seen, c.Decided = d.Words(), d.Rule, d.Reason, seen.Text(), at
		}
		if c.Open {
			c.Commands, c.Acts = v.commands(remediation.Hints(v.site.kit, r)), v.acts(remediation.Actions(r))
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Case) int {
		if a.Open != b.Open {
			return map[bool]int{true: -1, false: 1}[a.Open]
		}
		return b.Remediation.CreationTimestamp.Compare(a.Remediation.CreationTimestamp.Time)
	})
	return out
}

// Health is an owner in the list of the fleet.
type Health struct {
	Chip
	Link, Owner, Cluster string
	Open, Ended          int
	Worst                string
	Quorum               *v1alpha1.QuorumStatus
	Mass, Limits         []string
}

// Cluster is a cluster with its owners.
type Cluster struct {
	Name   string
	Pauses []Holder
	Owners []Health
}

type fleetPage struct {
	Clusters []Cluster // one page of the list
	Of       Pages
	Open     int
	Mass     []string
	// Limits are how many machines wait for an exhausted limit, by its rule.
	Limits map[string]int
}

func fleet(v *view) (any, error) {
	v.Title = "Fleet"
	p := fleetPage{Limits: make(map[string]int)}
	byName, holders := make(map[string]*Cluster), v.holders()
	for a, f := range feed.All[*remediation.Fold](v.Snapshot) {
		h := v.health(a, f)
		for _, rule := range h.Limits {
			p.Limits[rule]++
		}
		name := f.State.Owner.Namespace + "/" + f.State.Owner.Cluster
		if byName[name] == nil {
			byName[name] = &Cluster{Name: name, Pauses: holders[name]}
		}
		byName[name].Owners = append(byName[name].Owners, h)
		p.Open, p.Mass = p.Open+h.Open, append(p.Mass, h.Mass...)
	}
	for _, c := range byName {
		slices.SortFunc(c.Owners, func(a, b Health) int { return cmp.Compare(a.Owner, b.Owner) })
		p.Clusters = append(p.Clusters, *c)
	}
	open := func(c Cluster) (n int) {
		for _, h := range c.Owners {
			n += h.Open
		}
		return n
	}
	slices.SortFunc(p.Clusters, func(a, b Cluster) int { return cmp.Or(cmp.Compare(open(b), open(a)), cmp.Compare(a.Name, b.Name)) })
	slices.Sort(p.Mass)
	p.Mass = slices.Compact(p.Mass)
	var err error
	p.Clusters, p.Of, err = paged(v, Long{Param: "page", Label: "Pages of the clusters", Rows: rowsPerPage}, p.Clusters)
	return p, err
}

func (v *view) health(a eventlog.Aggregate, f *remediation.Fold) Health {
	o := f.State.Owner
	h := Health{
		Chip: Chip{Tone{"ok", "✓"}, "well"}, Link: v.link(a), Owner: o.Kind + " " + o.Name, Cluster: o.Cluster, Mass: massFailureWaits(&f.State),
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
			h.Chip, h.Worst, h.Quorum = c.Chip, fmt.Sprintf("%s: %s", c.Remediation.Name, c.Remediation.Status.Message), c.Remediation.Status.Quorum
		}
	}
	return h
}
