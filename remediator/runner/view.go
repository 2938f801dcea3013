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

// Remediations is the view of the owners in the log: of all of them, until it is told to forget. It is filled by a projector and read
// by many.
type Remediations struct {
	// Changed is called after an owner has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(owner remediator.Owner)
	// Report reports the events of a commit to users, from the projector's goroutine; it must not block. It is set before
	// use. nil reports nothing. Events before ReportSince are not reported.
	Report      func(Report)
	ReportSince time.Time
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string

	catalog *eventlog.Catalog[remediator.Event]
	mu      sync.RWMutex
	owners  map[string]*logged
	passed  passages
	opened  uint64 // the commit at which it was told to forget last
}

// Report is what people are told of one fact.
type Report struct {
	Owner remediator.Owner
	remediator.Notification
	// At is when it was recorded; Seq and Index are where.
	At    time.Time
	Seq   uint64
	Index int
}

type logged struct {
	state remediator.State
	seq   uint64
	err   error // the log holds something about the owner that this program cannot read
	// reduced: the state says no more than who the owner is, and there was no commit about it since the view was told to forget last.
	reduced bool
}

// NewRemediations makes an empty view.
func NewRemediations(changed func(owner remediator.Owner)) *Remediations {
	return &Remediations{Changed: changed, catalog: remediator.NewCatalog(), owners: make(map[string]*logged)}
}

// Apply folds a commit in; commits about anything but remediations are passed over.
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
		defer v.passed.last()
		return remediator.Owner{}, v.passed.apply(v.catalog, r)
	}
	e := v.owners[r.Aggregate.ID]
	if e == nil {
		e = &logged{}
		v.owners[r.Aggregate.ID] = e
	}
	e.seq, e.reduced = r.Seq, false
	if e.err == nil {
		e.err = v.catalog.Fold(r, v.reporting(&e.state, r))
	}
	return e.state.Owner, e.err
}

// Forget reduces the owners of which nothing counts any more to who they are, and drops those that nothing has happened to since they
// were reduced. seq and at are of the commit that says so: what is appended about a dropped owner names it again (forgot).
func (v *Remediations) Forget(seq uint64, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opened = seq
	kept := make(map[string]*logged)
	for id, e := range v.owners {
		if e.reduced {
			continue
		}
		e.reduced = e.err == nil && remediator.Forget(&e.state, at)
		kept[id] = e
	}
	v.owners = kept
}

// forgot says that the view has dropped an owner whose last commit is the one at seq, or will when it is told to forget again.
func (v *Remediations) forgot(id string, seq uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.owners[id]
	return 0 < seq && seq <= v.opened && (e == nil || e.reduced)
}

// reporting applies facts to a state, and reports each.
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

// Status is the view of the remediation of one machine.
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

// History lists the last remediations of one policy that have ended, the newest first; at most so many.
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

// Etcd lists the problems of an owner's etcd.
func (v *Remediations) Etcd(owner string) []v1alpha1.EtcdProblem {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.owners[owner]; e != nil {
		return remediator.EtcdStatus(&e.state)
	}
	return nil
}

// EtcdProblems counts the control planes whose etcd has a problem, by its kind.
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

// Due lists the owners that wait for something, so that each gets a turn after a restart.
func (v *Remediations) Due() []remediator.Owner {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var owners []remediator.Owner
	for _, e := range v.owners {
		if e.err == nil && e.state.Owner.UID != "" && remediator.Due(&e.state) {
			owners = append(owners, e.state.Owner)
		}
	}
	slices.SortFunc(owners, func(a, b remediator.Owner) int { return cmp.Compare(a.ID(), b.ID()) })
	return owners
}

// Begun is what was begun for the machines of one owner and is not over.
type Begun struct {
	Owner    remediator.Owner
	Machines []remediator.Beginning
	// Err says why the owner's events cannot be read: then it is unknown whether anything was begun.
	Err error
}

// Begun lists the owners for whose machines something was begun that is not over.
func (v *Remediations) Begun() []Begun {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []Begun
	for _, e := range v.owners {
		if machines := remediator.Begun(&e.state); len(machines) > 0 || e.err != nil {
			list = append(list, Begun{Owner: e.state.Owner, Machines: machines, Err: e.err})
		}
	}
	slices.SortFunc(list, func(a, b Begun) int { return cmp.Compare(a.Owner.ID(), b.Owner.ID()) })
	return list
}

// Phases counts the machines with something in progress in the log, by phase.
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

type known struct {
	id    string
	state *remediator.State
	seq   uint64
	// stranded: something about the owner cannot be read. The state is that before it.
	stranded bool
}

// states are copies, with the last passage before them: the runner continues from them by itself.
func (v *Remediations) states() ([]known, passages) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := make([]known, 0, len(v.owners))
	for id, e := range v.owners {
		list = append(list, known{id: id, state: e.state.Clone(), seq: e.seq, stranded: e.err != nil})
	}
	return list, v.passed
}
