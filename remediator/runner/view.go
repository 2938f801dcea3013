package runner

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// Remediations is the view of the owners in the log. A projector applies the commits; reading is safe for concurrent use. Forget deletes owners of
// which nothing counts any more.
type Remediations struct {
	// Changed is called after an owner has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(owner remediator.Owner)
	// Report reports the events of a commit to users, from the projector's goroutine; it must not block. It is set before
	// use. nil reports nothing. Events before ReportSince are not reported.
	Report      func(Report)
	ReportSince time.Time
	// LogID is the ID of the log whose commits are applied. It is set before use and not changed.
	LogID string

	catalog    *eventlog.Catalog[remediator.Event]
	mu         sync.RWMutex
	owners     map[string]*ownerEntry
	admissions admissions
	lastForget uint64 // the commit of the last Forget
}

// Report is the report of one event to users.
type Report struct {
	Owner remediator.Owner
	remediator.Notification
	// At is when it was recorded; Seq and Index are its position in the log.
	At    time.Time
	Seq   uint64
	Index int
}

type ownerEntry struct {
	state remediator.State
	seq   uint64
	err   error // an event of the owner that this program cannot read
	// reduced means that the state contains only the owner's identity, and that no commit about the owner has followed since the last Forget.
	reduced bool
}

// NewRemediations returns an empty view.
func NewRemediations(changed func(owner remediator.Owner)) *Remediations {
	return &Remediations{Changed: changed, catalog: remediator.NewCatalog(), owners: make(map[string]*ownerEntry)}
}

// Apply applies a commit. It ignores commits about anything but remediations.
func (v *Remediations) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != eventlog.KindRemediation {
		return nil
	}
	owner, err := v.apply(r)
	if v.Changed != nil && owner.UID != "" {
		v.Changed(owner)
	}
	return err
}

func (v *Remediations) apply(r eventlog.Record) (remediator.Owner, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Aggregate.ID == turnstile {
		defer v.admissions.keepLast()
		return remediator.Owner{}, v.admissions.apply(v.catalog, r)
	}
	e := v.owners[r.Aggregate.ID]
	if e == nil {
		e = &ownerEntry{}
		v.owners[r.Aggregate.ID] = e
	}
	e.seq, e.reduced = r.Seq, false
	if e.err == nil {
		e.err = v.catalog.Fold(r, v.reporting(&e.state, r))
	}
	return e.state.Owner, e.err
}

// Forget reduces owners to their identity if remediator.Forget permits it, and deletes owners without a commit since they were reduced. seq and at
// are those of the commit that triggers it. A later event about a deleted owner contains its identity again; see forgot.
func (v *Remediations) Forget(seq uint64, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastForget = seq
	kept := make(map[string]*ownerEntry)
	for id, e := range v.owners {
		if e.reduced {
			continue
		}
		e.reduced = e.err == nil && remediator.Forget(&e.state, at)
		kept[id] = e
	}
	v.owners = kept
}

// isForgotten reports whether the view has deleted an owner whose last commit is at seq, or will delete it at the next Forget.
func (v *Remediations) isForgotten(id string, seq uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.owners[id]
	return 0 < seq && seq <= v.lastForget && (e == nil || e.reduced)
}

// reporting returns a function that applies events to a state and reports each.
func (v *Remediations) reporting(s *remediator.State, r eventlog.Record) func(remediator.Event, time.Time) {
	index := -1
	return func(e remediator.Event, at time.Time) {
		index++
		n, ok := remediator.Notification{}, false
		if v.Report != nil && !at.Before(v.ReportSince) {
			n, ok = remediator.NotificationOf(s, e)
		}
		s.Apply(e, at)
		if ok {
			v.Report(Report{Owner: s.Owner, Notification: n, At: at, Seq: r.Seq, Index: index})
		}
	}
}

// Status returns the status of the remediation of one machine.
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

// History returns the last remediations of a policy that have ended, the newest first. most limits their number.
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

// EtcdProblems counts the control planes with a problem of etcd, by the kind of the problem.
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

// Pending returns the owners that wait for something, so that each gets a turn after a restart.
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

// Ongoing contains what was started for the machines of one owner and has not ended.
type Ongoing struct {
	Owner    remediator.Owner
	Machines []remediator.Progress
	// Err is why the owner's events cannot be read. Then it is unknown whether anything was started.
	Err error
}

// Ongoing returns the owners with machines for which something was started that has not ended, and the owners with unreadable events.
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

// Phases counts the machines with something in progress, by phase.
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

func (v *Remediations) seq(id string) uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.owners[id]; e != nil {
		return e.seq
	}
	return 0
}

type snapshot struct {
	id    string
	state *remediator.State
	seq   uint64
	// unreadable means that this program cannot read an event of the owner. The state is that before the event.
	unreadable bool
}

// states returns copies of all states, and the last passage before them. The runner applies later events to them itself.
func (v *Remediations) states() ([]snapshot, admissions) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := make([]snapshot, 0, len(v.owners))
	for id, e := range v.owners {
		list = append(list, snapshot{id: id, state: e.state.Clone(), seq: e.seq, unreadable: e.err != nil})
	}
	return list, v.admissions
}
