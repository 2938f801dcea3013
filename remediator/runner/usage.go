package runner

import (
	"maps"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// tracker contains what the runner knows about one owner between its turns. The owner's turn uses the aggregate, other turns read the usage under the
// runner's lock.
type tracker struct {
	agg      *root
	failures int
	// blindSince is when the first of the latest consecutive observations failed; zero if the last one succeeded.
	blindSince time.Time
	// reach and etcd are the last answer of the cluster, answeredAt is its time.
	reach      object.ConditionStatus
	etcd       *remediator.Etcd
	answeredAt time.Time
	// requests contains the times of requests, with or without an answer.
	requests remediator.EtcdRequests
	// attempted identifies the defragmentation that was carried out last, by its deadline. attemptErr is its error.
	attempted  time.Time
	attemptErr string
	// queued is since when its etcd has waited for others, zero if it does not. The runner's lock guards it.
	queued time.Time
	// ownerGone means that the owner is gone, and only its past starts count. The runner's lock guards it.
	ownerGone bool
	usage
}

// answerTTL is how long an answer of etcd's members may be used during a surge. The machines change many times a second then, and each observation
// would ask all members.
const answerTTL = 3 * time.Second

// reuseAnswer sets the last answer if it may be used, and reports whether it did.
func (e *tracker) reuseAnswer(f *remediator.Facts, now time.Time) bool {
	if !remediator.Surging(e.agg.State) || e.answeredAt.IsZero() || now.Before(e.answeredAt) || now.Sub(e.answeredAt) >= answerTTL {
		return false
	}
	f.Cluster.Reachable, f.Etcd = e.reach, e.etcd
	return true
}

// usage is what counts for the limits of a policy and of the fleet.
type usage struct {
	group   remediator.PolicyGroup
	policy  string // namespace/name of the policy that selected the owner at its last turn
	watched int    // its machines at that turn
	remediator.Usage
	started           []time.Time
	massFailure       bool                 // of the policy
	massFailureEnded  time.Time            // when the last mass failure of the policy ended
	massFailuresEnded map[string]time.Time // when the mass failures ended
	// defragmentingUntil is when the defragmentation of a member of its etcd ends at the latest, zero for none.
	defragmentingUntil time.Time
	// turnedAt is the time of the owner's last turn, zero before the first.
	turnedAt time.Time
}

// recordAnswer records the answer, or since when there is none.
func (e *tracker) recordAnswer(f *remediator.Facts, now time.Time) {
	e.requests.Before, e.requests.Last, e.requests.Blind = e.requests.Last, now, remediator.Blind(f)
	e.answeredAt, f.EtcdRequests = time.Time{}, e.requests
	switch {
	case !remediator.Blind(f):
		e.blindSince = time.Time{}
		e.reach, e.etcd, e.answeredAt = f.Cluster.Reachable, f.Etcd, now
	case e.blindSince.IsZero() || e.blindSince.After(now): // or the clock was set back
		e.blindSince = now
	default:
		f.Cluster.BlindFor = now.Sub(e.blindSince)
	}
}

// clampTimes replaces times in the future by now, because they were recorded before the clock was set back.
func (u *usage) clampTimes(now time.Time) {
	for _, at := range []*time.Time{&u.massFailureEnded, &u.Since, &u.turnedAt} {
		if at.After(now) {
			*at = now
		}
	}
	for i := range u.started {
		if u.started[i].After(now) {
			u.started[i] = now
		}
	}
	for domain, at := range u.massFailuresEnded {
		if at.After(now) {
			u.massFailuresEnded[domain] = now
		}
	}
}

// clampTimes replaces times in the future for all owners if the clock was set back. Owners without a turn are included.
func (r *Runner) clampTimes(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Add(remediator.Skew).Before(r.latest) {
		for _, e := range r.owners {
			e.clampTimes(now)
		}
		r.latest = now
	}
	if now.After(r.latest) {
		r.latest = now
	}
}

// usageOf returns the usage of an owner. f are the facts of its last turn, nil before the first.
func usageOf(s *remediator.State, f *remediator.Facts, group remediator.PolicyGroup, policy string, watched int) usage {
	return usage{
		defragmentingUntil: remediator.DefragmentingUntil(s),
		group:              group,
		policy:             policy, watched: watched, Usage: remediator.UsageOf(s, f), started: slices.Clone(s.Starts),
		massFailure: s.InMassFailure, massFailureEnded: s.MassFailureEnded, massFailuresEnded: maps.Clone(s.Mass.Ended),
	}
}

func (r *Runner) tracker(owner remediator.Owner) *tracker {
	id := owner.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	e := r.owners[id]
	if e == nil {
		e = &tracker{agg: r.root(id, new(remediator.State), 0)}
		e.group.Namespace = owner.Namespace
		r.owners[id] = e
	}
	return e
}

// load fills the trackers from the view, because limits and cooldowns count before an owner's first turn. The caller holds the lock.
func (r *Runner) load() {
	if r.owners != nil {
		return
	}
	r.owners, r.marked = make(map[string]*tracker), make(remediator.NamespaceCounts)
	owners, before := r.View.states()
	r.uncounted, r.turnstile = before, r.root(turnstile, new(remediator.State), before.seq)
	for _, known := range owners {
		e := &tracker{}
		policy, dryRun := remediator.PolicyOf(known.state)
		past := usageOf(known.state, nil, remediator.PolicyGroup{Namespace: known.state.Owner.Namespace, DryRun: dryRun}, policy, 0)
		past.clampTimes(r.now())
		r.setUsage(e, past)
		if known.unreadable || known.state.Owner.UID == "" {
			// Its turns read the log again. They fail, unless the view had forgotten the owner and does not know its identity.
			e.agg = r.root(known.id, new(remediator.State), 0)
		} else {
			e.agg = r.root(known.id, known.state, known.seq)
		}
		r.owners[known.id] = e
	}
}

// setUsage replaces the usage of an owner. The caller holds the lock.
func (r *Runner) setUsage(e *tracker, now usage) {
	for domain, n := range e.Unhealthy {
		r.marked.Add(e.group, domain, -n)
	}
	for domain, n := range now.Unhealthy {
		r.marked.Add(now.group, domain, n)
	}
	e.usage = now
}

// forget records that an owner is gone. It deletes the trackers of gone owners that no longer count for limits and cooldowns. If a deleted owner has
// a turn again, its log is read again.
func (r *Runner) forget(owner remediator.Owner) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.owners[owner.ID()]; e != nil {
		r.setUsage(e, usage{group: e.group, policy: e.policy, started: e.started, massFailureEnded: e.massFailureEnded, massFailuresEnded: e.massFailuresEnded})
		e.ownerGone = true
	}
	for id, e := range r.owners {
		if e.ownerGone && !e.counts(now) {
			delete(r.owners, id)
		}
	}
}

// counts reports whether something of the past still counts for a limit or a cooldown.
func (u *usage) counts(now time.Time) bool {
	past := append(slices.Collect(maps.Values(u.massFailuresEnded)), u.massFailureEnded)
	if n := len(u.started); n > 0 {
		past = append(past, u.started[n-1])
	}
	return slices.ContainsFunc(past, func(at time.Time) bool { return remediator.StillCounts(at, now) })
}

// recordUsage records what the limits count. The starts of an owner that is gone count for the policy that it had.
func (r *Runner) recordUsage(e *tracker, f *remediator.Facts) {
	policy, watched := "", 0
	if f.Policy.Name != "" {
		policy, watched = f.Owner.Namespace+"/"+f.Policy.Name, len(f.Machines)
	}
	now := usageOf(e.agg.State, f, remediator.PolicyGroup{Namespace: f.Owner.Namespace, DryRun: f.Policy.DryRun}, policy, watched)
	now.turnedAt = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !f.Owner.Found && policy == "" {
		now.policy = e.policy
	}
	e.ownerGone = false
	r.setUsage(e, now)
}

// ledger counts the policy's usage by other owners. The number of watched machines is at least that of the observation, because not every owner has
// had a turn in this process.
func (r *Runner) ledger(self *tracker, f *remediator.Facts) remediator.Ledger {
	l := remediator.Ledger{Watched: len(f.Machines), Unhealthy: remediator.Total(remediator.UsageOf(self.agg.State, f).Unhealthy)}
	if f.Policy.Name == "" {
		return l
	}
	policy, now := f.Owner.Namespace+"/"+f.Policy.Name, r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.owners {
		if e == self || e.policy != policy {
			continue
		}
		l.Watched += e.watched
		l.Unhealthy += remediator.Total(e.Unhealthy)
		if now.Sub(e.Since) < remediator.CountsFor {
			l.Active += remediator.Total(e.Active)
		}
		for _, at := range e.started {
			if now.Sub(at) < f.Policy.Limits.Window {
				l.Started = append(l.Started, at)
			}
		}
		if e.massFailureEnded.After(l.MassFailureEnded) {
			l.MassFailureEnded = e.massFailureEnded
		}
	}
	l.Watched = max(l.Watched, f.Fleet.Watched[policy])
	return l
}

// Totals contains the totals of one policy.
type Totals struct {
	Owners, Machines, Unhealthy, Active int
	// MassFailure is whether a mass failure is in progress for at least one owner; MassFailureEnded is when the last one ended.
	MassFailure      bool
	MassFailureEnded time.Time
	// Started are the times at which remediations were started.
	Started []time.Time
}

// Totals returns the totals of a policy.
func (r *Runner) Totals(namespace, policy string) Totals {
	var t Totals
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.owners {
		if e.policy != namespace+"/"+policy {
			continue
		}
		if !e.ownerGone {
			t.Owners++
		}
		t.Machines += e.watched
		t.Unhealthy += remediator.Total(e.Unhealthy)
		t.MassFailure = t.MassFailure || e.massFailure
		t.Active += remediator.Total(e.Active)
		t.Started = append(t.Started, e.started...)
		if e.massFailureEnded.After(t.MassFailureEnded) {
			t.MassFailureEnded = e.massFailureEnded
		}
	}
	return t
}
