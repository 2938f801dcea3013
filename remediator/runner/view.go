package runner

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// Remediations is the view of the owners in the log. A projector applies the commits; reading is
// safe for concurrent use. Forget deletes owners whose history no longer counts toward a limit or a
// cooldown.
type Remediations struct {
	// Changed is called in the projector's goroutine after each commit about an owner, and must not
	// block. It may be nil. Set it before use.
	Changed func(Change)
	// Report is called in the projector's goroutine for each event since ReportSince about which
	// users should be notified, and must not block. It may be nil. Set both before use.
	Report      func(Report)
	ReportSince time.Time
	// LogID is the ID of the log. Set it before use.
	LogID string

	catalog    *eventlog.Catalog[remediator.Event]
	mu         sync.RWMutex
	owners     map[string]*ownerEntry
	admissions admissions
}

// Change describes a commit about an owner.
type Change struct {
	Owner remediator.Owner
	Actor string
	// Machines contains the names of the machines that were unhealthy before or after the commit,
	// possibly repeated. Policies contains the names of the policies of the decisions about them.
	Machines, Policies []string
}

func (c *Change) add(s *remediator.State) {
	for _, u := range s.Unhealthy {
		c.Machines = append(c.Machines, u.Name)
		if u.Evidence.PolicyName != "" {
			c.Policies = append(c.Policies, u.Evidence.PolicyName)
		}
	}
	for _, a := range s.InProgress() {
		c.Machines = append(c.Machines, a.Victim.Name)
	}
}

// Report contains one notification for users about an event.
type Report struct {
	Owner remediator.Owner
	remediator.Notification
	// At is when the event was recorded. Seq and Index are its position in the log.
	At    time.Time
	Seq   uint64
	Index int
}

type ownerEntry struct {
	state remediator.State
	seq   uint64
	err   error // an event that this program cannot read
}

// NewRemediations returns an empty view.
func NewRemediations() *Remediations {
	return &Remediations{catalog: remediator.NewCatalog(), owners: make(map[string]*ownerEntry)}
}

// Apply applies a commit. It ignores commits of other kinds of aggregates.
func (v *Remediations) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != eventlog.KindRemediation {
		return nil
	}
	change, err := v.apply(r)
	if v.Changed != nil && change.Owner.UID != "" {
		v.Changed(change)
	}
	return err
}

func (v *Remediations) apply(r eventlog.Record) (Change, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Aggregate.ID == turnstile {
		p := &v.admissions
		err := p.apply(v.catalog, r)
		p.owners = slices.Clone(p.owners[max(0, len(p.owners)-1):]) // only the last one may not have been counted
		return Change{}, err
	}
	e := v.owners[r.Aggregate.ID]
	if e == nil {
		e = &ownerEntry{}
		v.owners[r.Aggregate.ID] = e
	}
	var c Change
	c.add(&e.state)
	e.seq = r.Seq
	if e.err == nil {
		index := 0
		e.err = v.catalog.Each(r, func(event remediator.Event, stored eventlog.Event) {
			v.applyEvent(&e.state, event, Report{At: stored.Time, Seq: r.Seq, Index: index})
			index, c.Actor = index+1, stored.Actor
		})
	}
	c.add(&e.state)
	c.Owner = e.state.Owner
	return c, e.err
}

func (v *Remediations) applyEvent(s *remediator.State, e remediator.Event, report Report) {
	reported := false
	if v.Report != nil && !report.At.Before(v.ReportSince) {
		report.Notification, reported = remediator.NotificationOf(s, e)
	}
	s.Apply(e, report.At)
	if reported {
		report.Owner = s.Owner
		v.Report(report)
	}
}

// Forget deletes owners for which remediator.Forget permits it. Runner.withOwner adds the identity
// to a later event about such an owner.
func (v *Remediations) Forget(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.owners, func(_ string, e *ownerEntry) bool { return e.err == nil && remediator.Forget(&e.state, at) })
}

// Status returns the status of the remediation of one machine of an owner. It returns false if
// there is none.
func (v *Remediations) Status(owner string, machine types.UID) (v1alpha1.SurgeRemediationStatus, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.owners[owner]
	if e == nil {
		return v1alpha1.SurgeRemediationStatus{}, false
	}
	status, ok := remediator.Status(&e.state, machine)
	if e.err != nil {
		status.Message = "stranded: " + e.err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
		ok = true
	}
	status.LogID, status.LogSequence = v.LogID, int64(e.seq) //nolint:gosec // a sequence stays far below 2^63
	return status, ok
}

// History returns up to most ended remediations of a policy, newest first.
func (v *Remediations) History(namespace, policy string, most int) []v1alpha1.PastRemediation {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []v1alpha1.PastRemediation
	for _, e := range v.owners {
		if e.state.Owner.Namespace == namespace {
			list = append(list, remediator.History(&e.state, policy)...)
		}
	}
	slices.SortFunc(list, func(a, b v1alpha1.PastRemediation) int {
		return cmp.Or(b.FinishedAt.Compare(a.FinishedAt.Time), cmp.Compare(a.Machine, b.Machine))
	})
	return slices.Clip(list[:min(len(list), most)])
}

// Etcd returns the problems of an owner's etcd.
func (v *Remediations) Etcd(owner string) []v1alpha1.EtcdProblem {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.owners[owner]; e != nil {
		return remediator.EtcdStatus(&e.state)
	}
	return nil
}

// EtcdProblems counts the control planes with an etcd problem, by kind of problem.
func (v *Remediations) EtcdProblems() map[v1alpha1.EtcdProblemKind]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	kinds := make(map[v1alpha1.EtcdProblemKind]int)
	for _, e := range v.owners {
		for _, p := range remediator.EtcdStatus(&e.state) {
			kinds[p.Problem]++
		}
	}
	return kinds
}

// Pending returns the owners with a marked machine or a remediation in progress. Each needs a turn
// after a restart.
func (v *Remediations) Pending() []remediator.Owner {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var owners []remediator.Owner
	for _, e := range v.owners {
		if e.err == nil && e.state.Owner.UID != "" && remediator.HasPending(&e.state) {
			owners = append(owners, e.state.Owner)
		}
	}
	slices.SortFunc(owners, func(a, b remediator.Owner) int { return cmp.Compare(a.ID(), b.ID()) })
	return owners
}

// Ongoing contains the unfinished remediations and escalation steps of one owner's machines.
type Ongoing struct {
	Owner    remediator.Owner
	Machines []remediator.Progress
	// Err is why the owner's events cannot be read. Then it is unknown whether anything was started.
	Err error
}

// Ongoing returns the owners with unfinished remediations or escalation steps, and the owners with
// unreadable events.
func (v *Remediations) Ongoing() []Ongoing {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []Ongoing
	for _, e := range v.owners {
		if machines := remediator.ProgressOf(&e.state); len(machines) > 0 || e.err != nil {
			list = append(list, Ongoing{Owner: e.state.Owner, Machines: machines, Err: e.err})
		}
	}
	slices.SortFunc(list, func(a, b Ongoing) int { return cmp.Compare(a.Owner.ID(), b.Owner.ID()) })
	return list
}

// Phases counts the machines with unfinished remediations by phase.
func (v *Remediations) Phases() map[v1alpha1.RemediationPhase]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	phases := make(map[v1alpha1.RemediationPhase]int)
	for _, e := range v.owners {
		for uid := range e.state.Unhealthy {
			if status, ok := remediator.Status(&e.state, uid); ok && status.FinishedAt == nil {
				phases[status.Phase]++
			}
		}
	}
	return phases
}

// state returns a copy of an owner's state, and the sequence number of the last commit that it
// includes. The state is empty if the view does not have the owner or cannot read one of its
// events. last is the sequence number of the owner's last commit that the view has received.
func (v *Remediations) state(id string) (s *remediator.State, seq, last uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch e := v.owners[id]; {
	case e == nil:
		return new(remediator.State), 0, 0
	case e.err != nil:
		return new(remediator.State), 0, e.seq
	default:
		return e.state.Clone(), e.seq, e.seq
	}
}
