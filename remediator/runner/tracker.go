package runner

import (
	"context"
	"maps"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// tracker contains what the runner keeps about one owner between turns. Only a turn of the owner
// uses the fields, except that turns of other owners read usage and queued under the runner's lock.
type tracker struct {
	// agg has a state only during a turn (see open).
	agg *root
	// claimed means that this process had claimed the owner at the end of the last turn.
	claimed bool
	// behind means that the last turn failed. Its append may be in the log although it returned an error.
	behind   bool
	failures int
	// blindSince is when the current series of failed probes began, or zero if the last probe succeeded.
	blindSince time.Time
	// reach and etcd contain the last response of the cluster, which was received at answeredAt.
	reach      object.ConditionStatus
	etcd       *remediator.Etcd
	answeredAt time.Time
	requests   remediator.EtcdRequests
	// attempted is the deadline of the last defragmentation, which identifies it. attemptErr is its error.
	attempted  time.Time
	attemptErr string
	// queued is the time since which the owner's etcd has waited for defragmentations of other
	// etcds, or zero if it does not wait. The runner's lock guards it.
	queued time.Time
	usage
}

const (
	// answerTTL is how long a response of etcd may be used during a surge. Machines then change
	// many times a second, and each observation would query all members.
	answerTTL = 3 * time.Second
	// queueTTL is how long after its last turn an owner stays in the queue for defragmentations. It
	// exceeds the longest defragmentation, during which an owner has no turn.
	queueTTL = 6 * time.Minute
)

// usage contains the counts of one owner toward the limits of its policy and of the fleet.
type usage struct {
	group   remediator.PolicyGroup
	policy  string // namespace/name of the policy that selected the owner at its last turn
	watched int    // the owner's machines at that turn
	remediator.Usage
	started           []time.Time
	massFailure       bool                 // of the policy
	massFailureEnded  time.Time            // when the policy's last one ended
	massFailuresEnded map[string]time.Time // when each failure domain's last one ended
	// defragmentingUntil is a deadline, zero for none.
	defragmentingUntil time.Time
	turnedAt           time.Time
}

// remembered returns the facts with the last response of the cluster, if that may still be used
// during a surge, or nil if the cluster must be queried again.
func (e *tracker) remembered(f *remediator.Facts, now time.Time) *remediator.Facts {
	if !remediator.Surging(e.agg.State) || e.answeredAt.IsZero() || now.Before(e.answeredAt) || now.Sub(e.answeredAt) >= answerTTL {
		return nil
	}
	known := *f
	known.Cluster.Reachable, known.Etcd = e.reach, e.etcd
	return &known
}

// recordAnswer stores the response of the cluster in the tracker or, if the probe failed, when the
// series of failures began. It returns the facts with the times of the probes and of the failures.
func (e *tracker) recordAnswer(answered *remediator.Facts, now time.Time) *remediator.Facts {
	f, blind := *answered, remediator.Blind(answered)
	e.requests.Before, e.requests.Last, e.requests.Blind = e.requests.Last, now, blind
	e.answeredAt, f.EtcdRequests = time.Time{}, e.requests
	switch {
	case !blind:
		e.blindSince = time.Time{}
		e.reach, e.etcd, e.answeredAt = f.Cluster.Reachable, f.Etcd, now
	case e.blindSince.IsZero() || e.blindSince.After(now): // or the clock was set back
		e.blindSince = now
	default:
		f.Cluster.BlindFor = now.Sub(e.blindSince)
	}
	return &f
}

// clampTimes replaces times in the future by now. They were recorded before the clock was set back.
func (u *usage) clampTimes(now time.Time) {
	clamp := func(at time.Time) time.Time {
		if at.After(now) {
			return now
		}
		return at
	}
	u.massFailureEnded, u.Since, u.turnedAt = clamp(u.massFailureEnded), clamp(u.Since), clamp(u.turnedAt)
	for i, at := range u.started {
		u.started[i] = clamp(at)
	}
	for domain, at := range u.massFailuresEnded {
		u.massFailuresEnded[domain] = clamp(at)
	}
}

// clampTimes replaces times in the future by now, for all owners, if the clock was set back.
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

// usageOf returns the usage of an owner with a state. f is nil before the owner's first turn.
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
		e = &tracker{agg: r.root(id, nil, 0)}
		e.group.Namespace = owner.Namespace
		r.owners[id] = e
	}
	return e
}

// load creates the trackers of all owners in the view, once, because an owner's past counts for
// limits and cooldowns even before its first turn. The caller holds the lock.
func (r *Runner) load() {
	if r.owners != nil {
		return
	}
	r.owners = make(map[string]*tracker)
	r.View.mu.RLock()
	defer r.View.mu.RUnlock()
	r.uncounted = r.View.admissions
	r.turnstile = r.root(turnstile, new(remediator.State), r.uncounted.seq)
	for id, known := range r.View.owners {
		e := &tracker{agg: r.root(id, nil, 0)}
		r.setPast(e, known.state.Owner.Namespace, &known.state)
		r.owners[id] = e
	}
}

// setPast sets the usage of an owner from its recorded state, until its next turn. The caller holds the lock.
func (r *Runner) setPast(e *tracker, namespace string, s *remediator.State) {
	policy, dryRun := e.policy, e.group.DryRun
	if policy == "" {
		policy, dryRun = remediator.PolicyOf(s)
	}
	past := usageOf(s, nil, remediator.PolicyGroup{Namespace: namespace, DryRun: dryRun}, policy, e.watched)
	past.clampTimes(r.now())
	e.usage = past
}

// open sets the state of an owner's aggregate to a copy of the state in the view. From the log it
// reads what the view does not contain: recent commits of this process, and the events of an owner
// that the view cannot read or has forgotten. It returns an error if another process has claimed
// the owner since the last turn.
func (r *Runner) open(ctx context.Context, e *tracker) error {
	appended := e.agg.Seq
	var last uint64
	e.agg.State, e.agg.Seq, last = r.View.state(e.agg.Name.ID)
	if e.behind || e.agg.Seq < max(appended, last) {
		if err := e.agg.Read(ctx); err != nil {
			return err
		}
	}
	if e.claimed && e.agg.State.Holder != "" {
		return e.agg.CheckClaim(r.Incarnation)
	}
	return nil
}

// marked returns the numbers of unhealthy machines of all owners, by group of policies and failure
// domain. The caller holds the lock.
func (r *Runner) marked() remediator.NamespaceCounts {
	counts := make(remediator.NamespaceCounts)
	for _, e := range r.owners {
		for domain, n := range e.Unhealthy {
			counts.Add(e.group, domain, n)
		}
	}
	return counts
}

// forget removes everything about an owner that is gone, except for the starts and mass failures
// that still count for limits and cooldowns.
func (r *Runner) forget(owner remediator.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.owners[owner.ID()]
	e.usage = usage{group: e.group, policy: e.policy, started: e.started, massFailureEnded: e.massFailureEnded, massFailuresEnded: e.massFailuresEnded}
	if !e.counts(r.now()) {
		delete(r.owners, owner.ID())
	}
}

func (u *usage) counts(now time.Time) bool {
	past := append(slices.Collect(maps.Values(u.massFailuresEnded)), u.massFailureEnded)
	if n := len(u.started); n > 0 {
		past = append(past, u.started[n-1])
	}
	return slices.ContainsFunc(past, func(at time.Time) bool { return remediator.StillCounts(at, now) })
}

// recordUsage updates the owner's usage, which the limits count. The starts of an owner that is
// gone count for the policy that last selected it.
func (r *Runner) recordUsage(e *tracker, f *remediator.Facts) {
	policy, watched := policyKey(f), 0
	if policy != "" {
		watched = len(f.Machines)
	}
	now := usageOf(e.agg.State, f, remediator.PolicyGroup{Namespace: f.Owner.Namespace, DryRun: f.Policy.DryRun}, policy, watched)
	now.turnedAt = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !f.Owner.Found && policy == "" {
		now.policy = e.policy
	}
	e.usage = now
}

func policyKey(f *remediator.Facts) string {
	if f.Policy.Name == "" {
		return ""
	}
	return f.Owner.Namespace + "/" + f.Policy.Name
}
