package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/internal/timespan"
)

// Snapshots is what a policy has stored of etcd before steps that put its data at risk; the zero value is nothing.
type Snapshots struct {
	Wanted bool
	// MaxAge is how old the last one may be, and Deadline how long one may take.
	MaxAge, Deadline time.Duration
	// Policy by its UID, and its Generation: what failed under another one is tried at once.
	Policy     types.UID
	Generation int64
}

// EtcdSnapshots is what is known of the snapshots of an owner's etcd.
type EtcdSnapshots struct {
	// Active is the one that is being taken, nil for none.
	Active *Snapshotting
	// TakenAt is from when the last one is that was stored, StoredAt when it was, and Place where; zero for none.
	TakenAt, StoredAt time.Time
	Place             string
	// Failures are the attempts since then that failed under this Policy and Generation, the last one at FailedAt, by Err; Next is what a
	// human can do.
	Failures   int
	Policy     types.UID
	Generation int64
	FailedAt   time.Time
	Err, Next  string
}

// Snapshotting is a snapshot that is being taken.
type Snapshotting struct {
	SnapshotStarted
	At time.Time
	// For is how long it may take.
	For time.Duration
}

// SnapshotResult is what became of the snapshot that must be stored by Until, which names it: Taking while it is being taken, of that Queued
// while others are, and Late if its time is over, whatever its process's clock says. Otherwise Err is empty of one that is stored.
type SnapshotResult struct {
	Until               time.Time
	Taking              bool
	Queued, Late        bool
	Node, Place, SHA256 string
	Bytes               int64
	Err, Next           string
}

const (
	// ruleSnapshot is the rule of a step that waits for a snapshot of etcd, ruleNoSnapshot of one whose snapshot could not be taken.
	ruleSnapshot   = "etcd-snapshot"
	ruleNoSnapshot = "etcd-snapshot-failed"
	// snapshotLook is how often it is looked whether a snapshot is stored.
	snapshotLook = 2 * time.Second
	// An attempt that failed is made again after snapshotRetry, then less and less often.
	snapshotRetry = time.Minute
	snapshotMost  = 15 * time.Minute
	// snapshotUse is how long the step that waited for a snapshot has to begin, however long it took.
	snapshotUse = time.Minute
)

// overBy is when it must be stored.
func (a *Snapshotting) overBy() time.Time {
	if by := a.At.Add(a.For); by.Before(a.Until) { // the clock was set back
		return by
	}
	return a.Until
}

func (a *Snapshotting) late() string { return "the snapshot was not stored in " + timespan.Text(a.For) }

// name of the file, in the order of time.
func (a *Snapshotting) name(owner string) string {
	return owner + "/" + a.At.UTC().Format(SnapshotTime)
}

// SnapshotTime is how the name of a snapshot says when it was begun.
const SnapshotTime = "20060102T150405Z"

// again is when an attempt may be made that follows those which failed.
func (e *EtcdSnapshots) again() time.Time {
	const doubles = 4
	return e.FailedAt.Add(min(snapshotRetry<<min(max(e.Failures-1, 0), doubles), snapshotMost))
}

// pauses says that an attempt failed, and that the next one is made later.
func (e *EtcdSnapshots) pauses(p Snapshots, now time.Time) bool {
	return e.Failures > 0 && e.under(p.Policy, p.Generation) && now.Before(e.again())
}

// under says that the last attempt was made under a generation of a policy.
func (e *EtcdSnapshots) under(policy types.UID, generation int64) bool {
	return e.Policy == policy && e.Generation == generation
}

// due is when the attempt that is made is over, or the next one is made; zero for neither.
func (e *EtcdSnapshots) due() time.Time {
	if e.Active != nil {
		return e.Active.overBy()
	}
	return dueIf(e.Failures > 0, e.again())
}

// waitsUntil is when a step that waits for a snapshot is decided again though nothing else changes; zero while one is taken again, which
// changes nothing until it is stored.
func (e *EtcdSnapshots) waitsUntil() time.Time {
	return dueIf(e.Active == nil || e.Failures == 0, e.due())
}

// fresh says that the last snapshot will do.
func (e *EtcdSnapshots) fresh(p Snapshots, now time.Time) bool { return now.Before(e.freshUntil(p)) }

// freshUntil is when the last snapshot will do no longer, zero where there is none.
func (e *EtcdSnapshots) freshUntil(p Snapshots) time.Time {
	aged, used := e.TakenAt.Add(p.MaxAge), e.StoredAt.Add(snapshotUse)
	if used.After(aged) {
		aged = used
	}
	return dueIf(!e.TakenAt.IsZero(), aged)
}

// snapshotFirst has a step that puts the data of etcd at risk wait for a snapshot, where the policy asks for that. Of an external etcd
// scute has none.
func (s *State) snapshotFirst(d Decision, m *Machine, f *Facts, now time.Time) *Decision {
	p, known := f.Policy.Snapshots, &s.Care.Snapshot
	why := f.risks(d, m)
	switch {
	case !p.Wanted || f.Policy.DryRun || why == "" || known.Active == nil && known.fresh(p, now):
		return nil
	case known.Active != nil && known.Failures == 0 && !now.Before(known.Active.overBy()):
		return &Decision{Verdict: Freeze, Rule: ruleNoSnapshot, Reason: why + ", and " + known.Active.late()}
	case known.Failures > 0 && known.Active != nil || known.pauses(p, now):
		return &Decision{
			Verdict: Freeze, Rule: ruleNoSnapshot, Next: known.Next,
			Reason: fmt.Sprintf("%s, and etcd has no snapshot that is younger than %s: %s; it is tried again", why, timespan.Text(p.MaxAge), known.Err),
		}
	default:
		return wait(ruleSnapshot, "a snapshot of etcd is taken first: %s", why)
	}
}

// staleAt is when a step that is about to be taken has no snapshot any more that will do, zero for never, or while nothing could be written.
func (r remediation) staleAt() time.Time {
	handsOver := r.Request.Method == OwnerRemediation && r.in(Requesting, Replacing, Removing) && r.victim != nil && !r.victim.Deleting && !handedOver(r.victim)
	toCome := handsOver || r.Request.Relaxed && r.unasked()
	step := Decision{Verdict: r.Request.Method, Relaxed: r.Request.Relaxed}
	at := r.saved.freshUntil(r.facts.Policy.Snapshots)
	if at.IsZero() { // the policy asks for one since then, or nobody knows how old the last one is
		at = r.Since
	}
	return dueIf(r.by == nil && r.facts.Policy.Snapshots.Wanted && toCome && r.facts.risks(step, r.victim) != "", at)
}

// awaitsSnapshot: it acts as soon as the snapshot is stored, so no other machine comes first.
func (d Decision) awaitsSnapshot() bool { return d.Verdict == Wait && d.Rule == ruleSnapshot }

// risks says why a step puts the data of etcd at risk, "" where it does not.
func (f *Facts) risks(d Decision, m *Machine) string {
	if !f.isControlPlane() || f.Owner.ExternalEtcd {
		return ""
	}
	_, member := f.votes(m)
	switch {
	case d.Verdict == OwnerRemediation && member:
		return "the machine is deleted, with its member of etcd, before its replacement exists"
	case d.Relaxed:
		return "the replacement is made with the preflight checks of " + f.Owner.Name + " relaxed"
	default:
		return ""
	}
}

// snapshots says what follows for snapshots: one is taken when a step waits for it.
func snapshots(s *State, f *Facts, now time.Time) []Event {
	known, p := &s.Care.Snapshot, f.Policy.Snapshots
	if known.Active != nil {
		return known.Active.ends(f, now)
	}
	unhealthy := s.unhealthy()
	waits := slices.IndexFunc(unhealthy, func(u *UnhealthyMachine) bool {
		return u.Mark != nil && (u.Decision.Rule == ruleSnapshot || u.Decision.Rule == ruleNoSnapshot) && f.present(u.Subject) != nil
	})
	if waits < 0 || !p.Wanted || f.Policy.DryRun || s.Active != nil || !f.mayBegin() || known.fresh(p, now) || known.pauses(p, now) {
		return nil
	}
	return []Event{SnapshotStarted{
		Machine: unhealthy[waits].Subject, Reason: "its replacement waits for it", Until: now.Add(p.Deadline), Policy: p.Policy, Generation: p.Generation,
	}}
}

// ends says how the taking of a snapshot ended, once it has.
func (a *Snapshotting) ends(f *Facts, now time.Time) []Event {
	got := f.Care.Snapshot
	if !got.Until.Equal(a.Until) { // by another process
		got = SnapshotResult{Taking: true}
	}
	end := SnapshotEnded{Machine: a.Machine, Outcome: SnapshotFailed, Reason: got.Err, Next: got.Next}
	switch over := got.Late || got.Taking && !now.Before(a.overBy()); {
	case over && got.Queued:
		end.Reason = "the snapshot was not begun in " + timespan.Text(a.For) + ": others were taken all the time, and only so many are at once"
		end.Next = "raise etcd.snapshot.deadline, or have the operator of scute raise clusterBackups.concurrency of the chart (--cluster-backup-concurrency)"
	case over:
		end.Reason, end.Next = a.late(), "see how large the database is and how fast its destination; or raise etcd.snapshot.deadline"
	case got.Taking:
		return nil
	case got.Err == "":
		end = SnapshotEnded{Machine: a.Machine, Outcome: SnapshotDone, Node: got.Node, Place: got.Place, Bytes: got.Bytes, SHA256: got.SHA256}
	}
	return []Event{end}
}

// take folds what was done about snapshots into the state.
func (e *EtcdSnapshots) take(event Event, at time.Time) {
	switch event := event.(type) {
	case SnapshotStarted:
		e.Active = &Snapshotting{SnapshotStarted: event, At: at, For: event.Until.Sub(at)}
		if !e.under(event.Policy, event.Generation) {
			e.Policy, e.Generation, e.Failures = event.Policy, event.Generation, 0
		}
	case SnapshotEnded:
		if event.Outcome == SnapshotDone {
			from := at
			if e.Active != nil {
				from = e.Active.At
			}
			*e = EtcdSnapshots{TakenAt: from, StoredAt: at, Place: event.Place}
			return
		}
		e.Active = nil
		e.Failures++
		e.FailedAt, e.Err = at, event.Reason
		e.Next = cmp.Or(event.Next, "correct etcd.snapshot of the policy, or what keeps scuted from it; or take it off, to go without")
	}
}
