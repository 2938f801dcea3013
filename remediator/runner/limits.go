package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// withOthers returns the facts with the usage of the limits by all other owners, and with what this
// process knows about defragmentations.
func (r *Runner) withOthers(self *tracker, f *remediator.Facts) *remediator.Facts {
	now, known := r.now(), *f
	r.mu.Lock()
	defer r.mu.Unlock()
	known.Ledger = r.ledger(self, f, now)
	known.Fleet = r.usedByOthers(self, f.Fleet, now)
	known.Fleet.Machines, known.Fleet.Unhealthy = remediator.MassEvidence(f.Fleet.Selected, r.marked())(f.Owner.Namespace)
	known.Fleet.MassFailuresEnded = r.massFailuresEnded(f.Owner.Namespace)
	known.Maintenance = remediator.MaintenanceFacts{Attempted: self.attempted, Err: self.attemptErr}
	known.Maintenance.OtherOwner, known.Maintenance.FreeAt = r.queuedBefore(self, now)
	switch {
	case f.Cluster.Reachable == object.Absent && f.Policy.Defragmentation.Enabled && !f.Policy.DryRun: // etcd was not queried
	case !remediator.AwaitsDefragmentation(self.agg.State, &known, now):
		self.queued = time.Time{}
	case self.queued.IsZero():
		self.queued = now
	}
	known.Maintenance.QueuedSince = self.queued
	return &known
}

// queuedBefore returns the owner whose etcd is being defragmented, and the deadline of the
// defragmentation. If there is none, it returns an owner that has waited for a defragmentation
// longer than self and had a turn within queueTTL, or "". Only one member of the fleet is
// defragmented at a time, because each defragmentation occupies a concurrent reconciliation. The
// queue prevents an owner whose defragmentations keep failing from blocking others. The caller
// holds the lock.
func (r *Runner) queuedBefore(self *tracker, now time.Time) (owner string, until time.Time) {
	for id, e := range r.owners {
		switch {
		case e == self:
		case now.Before(e.defragmentingUntil):
			return id, e.defragmentingUntil
		case !e.queued.IsZero() && now.Sub(e.turnedAt) < queueTTL && (self.queued.IsZero() || e.queued.Before(self.queued)):
			owner = id
		}
	}
	return owner, time.Time{}
}

// ledger returns the usage of the limits of an owner's policy. Not every owner has had a turn in
// this process, so Watched is at least the number of machines that the observer counted for the
// policy. The caller holds the lock.
func (r *Runner) ledger(self *tracker, f *remediator.Facts, now time.Time) remediator.Ledger {
	l := remediator.Ledger{Watched: len(f.Machines), Unhealthy: remediator.Total(remediator.UsageOf(self.agg.State, f).Unhealthy)}
	policy := policyKey(f)
	if policy == "" {
		return l
	}
	t := r.totals(policy, self, now)
	return remediator.Ledger{
		Active: t.counted, Started: t.Started, Watched: max(l.Watched+t.Machines, f.Fleet.Watched[policy]),
		Unhealthy: l.Unhealthy + t.Unhealthy, MassFailureEnded: t.MassFailureEnded,
	}
}

// Totals contains the totals of one policy.
type Totals struct {
	Machines, Unhealthy, Active int
	// MassFailure reports whether any owner has a mass failure. MassFailureEnded is when the last one ended.
	MassFailure      bool
	MassFailureEnded time.Time
	// Started contains the start times of remediations.
	Started []time.Time

	counted int // active remediations that count toward other owners' limits
}

// Totals returns the totals of a policy.
func (r *Runner) Totals(namespace, policy string) Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals(namespace+"/"+policy, nil, r.now())
}

// totals returns the totals of a policy, without those of the owner in the parameter without, if
// any. The caller holds the lock.
func (r *Runner) totals(policy string, without *tracker, now time.Time) (t Totals) {
	for _, e := range r.owners {
		if e == without || e.policy != policy {
			continue
		}
		t.Machines += e.watched
		t.Unhealthy += remediator.Total(e.Unhealthy)
		t.MassFailure = t.MassFailure || e.massFailure
		t.Active += remediator.Total(e.Active)
		if now.Sub(e.Since) < remediator.CountsFor {
			t.counted += remediator.Total(e.Active)
		}
		t.Started = append(t.Started, e.started...)
		if e.massFailureEnded.After(t.MassFailureEnded) {
			t.MassFailureEnded = e.massFailureEnded
		}
	}
	return t
}

// usedByOthers returns the usage of the fleet's limits by all owners except self. The caller holds the lock.
func (r *Runner) usedByOthers(self *tracker, seen remediator.Fleet, now time.Time) remediator.Fleet {
	f := remediator.Fleet{Limits: seen.Limits, Selected: seen.Selected, Watched: seen.Watched, Active: make(map[string]int)}
	for _, e := range r.owners {
		if e == self {
			continue
		}
		if now.Sub(e.Since) < remediator.CountsFor {
			for domain, n := range e.Active {
				f.Active[domain] += n
			}
		}
		for _, at := range e.started {
			if now.Sub(at) < f.Limits.Window {
				f.Starts = append(f.Starts, at)
			}
		}
	}
	return f
}

// massFailuresEnded returns, by failure domain, when the last mass failure ended, for a cooldown of
// owners in a namespace. For each failure domain it ignores the other namespace whose mass failure
// ended last, so that one other namespace alone cannot cause a cooldown (see MassEvidence). For the
// namespace "", all namespaces count. The caller holds the lock.
func (r *Runner) massFailuresEnded(namespace string) map[string]time.Time {
	by := make(map[string]map[string]time.Time)
	for _, e := range r.owners {
		if e.group.DryRun && e.group.Namespace != namespace {
			continue
		}
		for domain, at := range e.massFailuresEnded {
			if by[domain] == nil {
				by[domain] = make(map[string]time.Time)
			}
			if at.After(by[domain][e.group.Namespace]) {
				by[domain][e.group.Namespace] = at
			}
		}
	}
	passed := make(map[string]time.Time)
	for domain, times := range by {
		own := times[namespace]
		delete(times, namespace)
		others := slices.SortedFunc(maps.Values(times), func(a, b time.Time) int { return b.Compare(a) })
		if namespace != "" {
			others = others[min(1, len(others)):]
		}
		if last := slices.MaxFunc(append(others, own), time.Time.Compare); !last.IsZero() {
			passed[domain] = last
		}
	}
	return passed
}

// Fleet returns the usage of the fleet's limits by all owners. seen contains the limits and the
// selected machines of an observation. FailingDomains contains the domains with a mass failure in
// any namespace.
func (r *Runner) Fleet(seen remediator.Fleet) remediator.Fleet {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	f := r.usedByOthers(nil, seen, now)
	marked := r.marked()
	countFor := remediator.MassEvidence(seen.Selected, marked)
	f.MassFailuresEnded = r.massFailuresEnded("")
	f.FailingDomains = make(map[string]bool)
	for _, counts := range []remediator.NamespaceCounts{seen.Selected, marked} {
		for group := range counts {
			one := remediator.Fleet{Limits: seen.Limits}
			one.Machines, one.Unhealthy = countFor(group.Namespace)
			one.AddFailing(f.FailingDomains)
		}
	}
	f.Machines, f.Unhealthy = countFor("")
	return f
}

// turnstile is the aggregate in which every start is recorded first, so that two processes that
// both act as the leader do not exceed a limit together. An owner's own aggregate lacks the starts
// for other owners.
//
// A process appends the owner's name to the turnstile (a passage), and then the start to the
// owner's aggregate. If other processes have appended passages since its last read, it counts the
// starts for the owners they named, and decides again. The start for the last named owner may not
// be appended yet. So the process claims that owner: after the claim, the start either is in the
// log or can no longer be appended. A process that passes has thus counted all earlier passages. A
// passage is valid for a start for its owner by any process, until another process appends to the
// turnstile.
const turnstile = "fleet"

type admissions struct {
	seq    uint64
	owners []remediator.Owner // named in the turnstile
	holder string             // process that named the last owner
}

func (p *admissions) apply(catalog *eventlog.Catalog[remediator.Event], r eventlog.Record) error {
	err := catalog.Fold(r, func(e remediator.Event, _ time.Time) {
		if admitted, ok := e.(remediator.Admitted); ok {
			p.owners, p.holder = append(p.owners, admitted.Owner), admitted.Holder
		}
	})
	if err == nil {
		p.seq = r.Seq
	}
	return err
}

// admit appends a passage to the turnstile before something is started for an owner. again means
// that other processes have appended passages since the last read. In that case admit has counted
// their starts instead, and the caller must decide again. The caller holds startMu.
func (r *Runner) admit(ctx context.Context, owner remediator.Owner) (again bool, err error) {
	if len(r.uncounted.owners) == 0 {
		err := r.turnstile.Append(ctx, remediator.Admitted{Holder: r.Incarnation, Owner: owner})
		if !errors.Is(err, eventlog.ErrConflict) {
			return false, err
		}
	}
	records, err := r.Log.Read(ctx, r.turnstile.Name, r.turnstile.Seq)
	if err != nil {
		return false, err
	}
	if len(records) == 0 && len(r.uncounted.owners) == 1 && r.uncounted.owners[0].UID == owner.UID {
		return false, nil // an earlier process passed for this owner
	}
	for _, record := range records {
		if err := r.uncounted.apply(r.turnstile.Catalog, record); err != nil {
			return false, err
		}
	}
	for i, named := range r.uncounted.owners {
		claim := i == len(r.uncounted.owners)-1 && r.uncounted.holder != r.Incarnation
		if err := r.countOwner(ctx, named, claim); err != nil {
			return false, fmt.Errorf("applying what another process has started for %s: %w", named.ID(), err)
		}
	}
	r.turnstile.Seq, r.uncounted.owners = r.uncounted.seq, nil
	return true, nil
}

// countOwner reads the starts for an owner from the log, and adds them to the owner's usage. If
// claim is true, it also claims the owner, so that no other process can start anything for it. If
// an event cannot be read, only the events before it count: the turns of this owner then fail, but
// no other owner is blocked.
func (r *Runner) countOwner(ctx context.Context, owner remediator.Owner, claim bool) error {
	agg := r.root(owner.ID(), new(remediator.State), 0)
	for {
		err := agg.Read(ctx)
		var unreadable *aggregate.UnreadableError
		if errors.As(err, &unreadable) {
			r.Logger.Warn("the events of an owner cannot be read; nothing starts for it", "owner", agg.Name.ID, "error", err)
			agg.Seq = unreadable.Last
		} else if err != nil {
			return err
		}
		if !claim || agg.State.Holder == r.Incarnation {
			break
		}
		if err = agg.Append(ctx, r.withOwner(agg, []remediator.Event{remediator.Claimed{Holder: r.Incarnation}})...); err == nil {
			break
		} else if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		agg = r.root(owner.ID(), new(remediator.State), 0)
	}
	e := r.tracker(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setPast(e, owner.Namespace, agg.State)
	return nil
}
