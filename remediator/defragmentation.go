package remediator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// Defragmentation contains a policy's settings for defragmenting etcd's databases. The zero value disables it.
type Defragmentation struct {
	Enabled bool
	// FreePercent and MinSize define when a database is defragmented: it has at least MinSize
	// bytes, of which at least FreePercent percent are free.
	FreePercent int
	MinSize     int64
	// Pause is the time between the defragmentations of two members. Deadline is the timeout of one
	// defragmentation.
	Pause, Deadline time.Duration
	// Disarm means that scute disarms the alarm NOSPACE when all databases have free space again.
	Disarm bool
}

type defragmenting struct {
	DefragmentationStarted
	At      time.Time
	Timeout time.Duration
}

// deadline returns the time by which the defragmentation must have ended.
func (d defragmenting) deadline() time.Time {
	if by := d.At.Add(d.Timeout); by.Before(d.Until) { // the clock was set back
		return by
	}
	return d.Until
}

// etcdMaintenance records the defragmentations of an owner's etcd.
type etcdMaintenance struct {
	// Active is the member that is being defragmented. It has no Node if there is none.
	Active defragmenting
	// Done contains when members were defragmented, by node. Entries older than defragmentInterval are deleted.
	Done map[string]time.Time
	// EndedAt is when the last defragmentation ended. Failed means that it was not done.
	EndedAt time.Time
	Failed  bool
	// WaitReason is the last recorded reason why a member was not defragmented although it should
	// be.
	WaitReason string
	// DisarmedAt is when scute decided to disarm the present alarm NOSPACE, or zero.
	DisarmedAt time.Time
}

// MaintenanceFacts contains what the runner knows about defragmentations that is not in the owner's log.
type MaintenanceFacts struct {
	// OtherOwner is the owner of another etcd that is being defragmented, or that has waited longer
	// to be; "" for none. FreeAt is when the defragmentation of that etcd ends at the latest, or
	// zero if it is unknown.
	OtherOwner string
	FreeAt     time.Time
	// QueuedSince is the time since which this etcd has waited for nothing but defragmentations of
	// other etcds, or zero if it does not wait.
	QueuedSince time.Time
	// Attempted identifies the last defragmentation that this process attempted, by its deadline.
	// Err is the error of the attempt, or "".
	Attempted time.Time
	Err       string
}

const (
	// defragmentInterval is the minimum time between two defragmentations of a member, because a
	// database that becomes fragmented again sooner would not benefit. After a failed
	// defragmentation, it is the minimum time until any member of the same etcd is defragmented.
	defragmentInterval = time.Hour
	// disarmTimeout bounds the attempts to disarm an alarm.
	disarmTimeout = time.Minute
)

func maintain(s *State, f *Facts, now time.Time) []Event {
	switch {
	case s.Maintenance.Active.Node != "":
		return s.Maintenance.Active.end(f, now)
	case !f.defragmentationEnabled():
		return nil
	case f.Policy.Defragmentation.Disarm && s.Maintenance.DisarmedAt.IsZero() && len(s.Maintenance.Done) > 0 && f.hasSpaceAgain() && s.defragmentationBlocker(f) == "":
		return []Event{NoSpaceDisarmed{Members: f.Etcd.alarmed("NOSPACE"), Databases: f.Etcd.report(etcdReport{}).Databases}}
	default:
		return s.startDefragmentation(f, now)
	}
}

// defragmentationEnabled reports whether the policy enables defragmentation, and etcd has listed
// its members.
func (f *Facts) defragmentationEnabled() bool {
	p := &f.Policy
	return p.Defragmentation.Enabled && !p.DryRun && p.Name != "" && p.Unreadable == "" && f.isControlPlane() && f.Etcd != nil && f.Etcd.Err == ""
}

// startDefragmentation starts the defragmentation of the first member that needs it, or records why none may start.
func (s *State) startDefragmentation(f *Facts, now time.Time) []Event {
	m := s.nextFragmented(f, now)
	if m == nil {
		return nil
	}
	why := s.defragmentationBlocker(f)
	switch {
	case why != "" && why != s.Maintenance.WaitReason:
		return []Event{DefragmentationWaits{Node: m.Node, Reason: why}}
	case why != "", f.Maintenance.OtherOwner != "", now.Before(s.defragmentAfter(f)):
		return nil
	}
	return []Event{DefragmentationStarted{
		Node: m.Node, Leader: m.Leader, Before: m.database(), Until: now.Add(f.Policy.Defragmentation.Deadline),
		Reason: fmt.Sprintf("its database has at least %s, of which at least %d %% are free", formatSize(f.Policy.Defragmentation.MinSize), f.Policy.Defragmentation.FreePercent),
	}}
}

// AwaitsDefragmentation reports whether a member of this etcd should be defragmented now, and waits
// only for the defragmentation of another etcd.
func AwaitsDefragmentation(s *State, f *Facts, now time.Time) bool {
	return f.defragmentationEnabled() && s.Maintenance.Active.Node == "" && f.Maintenance.OtherOwner != "" && s.nextFragmented(f, now) != nil && s.defragmentationBlocker(f) == "" && !now.Before(s.defragmentAfter(f))
}

// defragmentAfter returns the time from which the next member may be defragmented.
func (s *State) defragmentAfter(f *Facts) time.Time {
	switch {
	case s.Maintenance.EndedAt.IsZero():
		return time.Time{}
	case s.Maintenance.Failed:
		return s.Maintenance.EndedAt.Add(max(defragmentInterval, f.Policy.Defragmentation.Pause))
	default:
		return s.Maintenance.EndedAt.Add(f.Policy.Defragmentation.Pause)
	}
}

// nextFragmented returns the member that should be defragmented next, or nil. It chooses the
// followers in the order of their nodes' names, and the leader last.
func (s *State) nextFragmented(f *Facts, now time.Time) *Member {
	d := f.Policy.Defragmentation
	members := slices.SortedFunc(slices.Values(f.Etcd.Members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(boolToInt(a.Leader), boolToInt(b.Leader)), cmp.Compare(a.Node, b.Node))
	})
	return find(members, func(m *Member) bool {
		done, ok := s.Maintenance.Done[m.Node]
		return m.Size > 0 && m.Size >= d.MinSize && m.Size-m.InUse >= m.Size/100*int64(d.FreePercent) && (!ok || !now.Before(done.Add(defragmentInterval)))
	})
}

// defragmentationBlocker returns why no member of the etcd may be defragmented now, or "". With the
// alarm NOSPACE, unhealthy machines do not block a defragmentation, because a full database makes
// machines unhealthy and a defragmentation repairs that.
func (s *State) defragmentationBlocker(f *Facts) string {
	q, full := Count(f.Etcd), len(f.Etcd.alarmed("NOSPACE")) > 0
	switch {
	case f.Move != "" || f.Cluster.Paused || f.Owner.Paused || f.checkPauseRequests() != nil:
		return "the cluster is being moved or is paused, or there is a pause request"
	case f.Owner.Deleting || f.Cluster.Deleting:
		return f.Owner.Name + " is being deleted"
	case s.Active != nil:
		return unhealthyReason(s.Active.Victim.Name)
	case s.escalating() != nil:
		return "an escalation step is in progress for machine " + s.escalating().Name
	case f.Cluster.Reachable != object.True:
		return "the API server of the cluster does not answer"
	case len(f.Etcd.alarmed("CORRUPT")) > 0:
		return "etcd has the alarm CORRUPT"
	case q.Learners > 0:
		return "a member of etcd is a learner"
	case len(q.Silent) > 0:
		return "a member of etcd does not answer: " + strings.Join(q.Silent, ", ")
	case !slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Leader }):
		return "etcd has no leader"
	case f.Owner.RollingOut != "" || f.Cluster.UpgradePending:
		return "a rollout or an upgrade is in progress"
	case f.Owner.Relaxed != "":
		return f.Owner.Name + " is remediating a machine without scute"
	case f.deletingMachines() > 0 || int(f.desiredReplicas()) != len(f.Machines) || int(f.Owner.Replicas) != len(f.Machines) || len(f.Etcd.Members) != len(f.Machines):
		return "machines or members of etcd are being added or removed"
	}
	for m := range f.all() {
		u := s.record(m.UID)
		switch {
		case f.Etcd.member(m) == nil:
			return "machine " + m.Name + " has no member of etcd"
		case !full && (u.marked() || len(m.brokenComponents(false)) > 0):
			return unhealthyReason(m.Name)
		}
	}
	return ""
}

func unhealthyReason(machine string) string {
	return "machine " + machine + " is unhealthy, or is being replaced"
}

// end returns the event that records how a defragmentation ended, or nil while it is in progress.
// If the database is smaller than before, the outcome is Done, whichever process defragmented it.
func (d defragmenting) end(f *Facts, now time.Time) []Event {
	end := DefragmentationEnded{Node: d.Node, Before: d.Before}
	expired := !now.Before(d.deadline())
	tried := f.Maintenance.Attempted.Equal(d.Until)
	var m *Member
	if f.Etcd != nil {
		m = find(f.Etcd.Members, func(m *Member) bool { return m.Node == d.Node })
	}
	if m != nil && m.Size > 0 {
		end.After = m.database()
	}
	switch answers := m.answering(); {
	case answers && (m.Size > 0 && m.Size < d.Before.Size || tried && f.Maintenance.Err == ""):
		end.Outcome = DefragmentationDone
		if len(f.Etcd.alarmed("NOSPACE")) > 0 && !f.Policy.Defragmentation.Disarm {
			end.Next = "when all members have free space again, run etcdctl alarm disarm"
		}
	case answers && expired && tried: // not before the deadline, because it may continue after its connection ended
		end.Outcome, end.Reason = DefragmentationFailed, f.Maintenance.Err
	case answers && expired:
		end.Outcome, end.Reason = DefragmentationFailed, "it was not run before the deadline"
	case expired:
		end.Outcome, end.Reason = DefragmentationTimedOut, "the member could not be reached, or has not answered since the defragmentation started"
		end.Next = "check whether the member answers again (a large database takes minutes); if it does not, restart it"
	default:
		return nil
	}
	return []Event{end}
}

// hasSpaceAgain reports whether etcd still has the alarm NOSPACE although every member's database
// is below belowQuotaPercent percent of its quota.
func (f *Facts) hasSpaceAgain() bool {
	return len(f.Etcd.alarmed("NOSPACE")) > 0 && !slices.ContainsFunc(f.Etcd.Members, func(m Member) bool {
		return m.Quota == 0 || m.Size == 0 || m.database().nearQuota(belowQuotaPercent)
	})
}

func maintenanceActions(s *State, f *Facts, now time.Time) []Action {
	c := &s.Maintenance
	switch {
	case f.Etcd == nil:
		return nil
	case c.Active.Node != "" && now.Before(c.Active.deadline()) && !f.Maintenance.Attempted.Equal(c.Active.Until):
		if m := f.machineOf(Member{Node: c.Active.Node}); m != nil {
			return []Action{{Type: Defragment, Machine: m.subject(), Value: m.Node, NewLeader: f.nextLeader(m.Node), Size: c.Active.Before.Size, Until: c.Active.Until, Timeout: c.Active.deadline().Sub(now)}}
		}
	case !c.DisarmedAt.IsZero() && now.Before(c.DisarmedAt.Add(disarmTimeout)) && f.hasSpaceAgain():
		return []Action{{Type: Disarm}}
	}
	return nil
}

// nextLeader returns the node of the member to which the leadership should move before the member
// on the given node is defragmented, because all clients would have to wait for a leader that is
// being defragmented. It returns "" if that member does not lead, or no other member can.
func (f *Facts) nextLeader(node string) string {
	leads := slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Node == node && m.Leader })
	if to := f.Etcd.otherVoter(node, (*Member).answering); leads && to != nil {
		return to.Node
	}
	return ""
}

// checkDefragmentation returns a wait while a member of etcd is being defragmented, or nil. Such a
// member does not answer, although nothing is wrong with its machine.
func (s *State) checkDefragmentation() *Decision {
	if s.Maintenance.Active.Node == "" {
		return nil
	}
	return wait("defragmentation", "etcd on %s is being defragmented, until %s at the latest", s.Maintenance.Active.Node, utc(DefragmentingUntil(s)))
}

// maintenanceIn returns the time until etcd must be queried because a defragmentation is in
// progress or the next one may start. ok is false if neither is the case.
func (s *State) maintenanceIn(f *Facts, now time.Time) (in time.Duration, ok bool) {
	if s.Maintenance.Active.Node != "" {
		return 0, true
	}
	if c := f.Maintenance; !c.QueuedSince.IsZero() {
		switch {
		case c.OtherOwner == "":
			return 0, true
		case c.FreeAt.After(now):
			return c.FreeAt.Sub(now), true
		default:
			return pollInterval, true
		}
	}
	next := s.defragmentAfter(f)
	if !f.Policy.Defragmentation.Enabled || next.IsZero() || next.Before(f.EtcdRequests.First) || !f.EtcdRequests.Last.Before(next) {
		return 0, false
	}
	return max(0, next.Sub(now)), true
}

// DefragmentingUntil returns when the defragmentation in progress in the owner's etcd ends at the
// latest, even if the process that started it stops; zero for none.
func DefragmentingUntil(s *State) time.Time {
	return s.Maintenance.Active.deadline()
}

func (c *etcdMaintenance) apply(e Event, at time.Time) {
	switch e := e.(type) {
	case DefragmentationWaits:
		c.WaitReason = e.Reason
	case DefragmentationStarted:
		c.Active, c.WaitReason = defragmenting{DefragmentationStarted: e, At: at, Timeout: e.Until.Sub(at)}, ""
	case DefragmentationEnded:
		c.Active, c.EndedAt, c.Failed = defragmenting{}, at, e.Outcome != DefragmentationDone
		maps.DeleteFunc(c.Done, func(_ string, done time.Time) bool { return at.Sub(done) >= defragmentInterval })
		if !c.Failed {
			put(&c.Done, e.Node, at)
		}
	case NoSpaceDisarmed:
		c.DisarmedAt = at
	case EtcdReported:
		if !slices.ContainsFunc(e.Problems, func(p EtcdProblem) bool { return p.Kind == v1alpha1.EtcdNoSpace }) {
			c.DisarmedAt = time.Time{}
		}
	}
}
