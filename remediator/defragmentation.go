package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// Defragmentation is a policy's setting for databases with much free space. The zero value defragments nothing.
type Defragmentation struct {
	Wanted bool
	// A database is defragmented when it has at least MinSize bytes, of which at least FreePercent percent are free.
	FreePercent int
	MinSize     int64
	// Pause is the time between two members, Deadline the timeout of each.
	Pause, Deadline time.Duration
	// Disarm is whether the alarm NOSPACE is disarmed when all databases have free space again.
	Disarm bool
}

// Defragmenting is a member of etcd that is being defragmented.
type Defragmenting struct {
	DefragmentationStarted
	At time.Time
	// For is the timeout.
	For time.Duration
}

// overBy returns when the defragmentation must have ended.
func (d *Defragmenting) overBy() time.Time {
	if by := d.At.Add(d.For); by.Before(d.Until) { // the clock was set back
		return by
	}
	return d.Until
}

// EtcdCare records the defragmentations of an owner's etcd.
type EtcdCare struct {
	// Active is the member that is being defragmented, or nil.
	Active *Defragmenting
	// Done contains when members were defragmented, by node. Entries older than careAgain are deleted.
	Done map[string]time.Time
	// EndedAt is when the last defragmentation ended. Failed is whether it failed.
	EndedAt time.Time
	Failed  bool
	// Waits is the last recorded reason why a due defragmentation was not started.
	Waits string
	// DisarmedAt is when scute decided to disarm the present alarm NOSPACE; zero without one.
	DisarmedAt time.Time
}

// CareFacts contains what the runner knows about defragmentations that is not in the owner's log.
type CareFacts struct {
	// Elsewhere is the owner of another etcd that is being defragmented, or that has waited longer; "" for none. Free is when that ends at the
	// latest, or zero if it is unknown.
	Elsewhere string
	Free      time.Time
	// Queued is since when this etcd has waited only for others; zero if it does not.
	Queued time.Time
	// Tried identifies the defragmentation that this process has carried out, by its deadline. Err is its error, or "".
	Tried time.Time
	Err   string
}

const (
	// careAgain is the minimum time until a member is defragmented again, and after a failure until any member of the etcd is. A database that is
	// fragmented again sooner would not benefit.
	careAgain = time.Hour
	// disarmFor bounds the attempts to disarm an alarm.
	disarmFor = time.Minute
)

// care returns the events about etcd's databases.
func care(s *State, f *Facts, now time.Time) []Event {
	switch {
	case s.Care.Active != nil:
		return s.Care.Active.ends(f, now)
	case !f.wantsCare():
		return nil
	case f.Policy.Defragmentation.Disarm && s.Care.DisarmedAt.IsZero() && len(s.Care.Done) > 0 && f.roomAgain() && s.hinders(f) == "":
		return []Event{NoSpaceDisarmed{Members: f.Etcd.alarmed("NOSPACE"), Databases: f.Etcd.report(nil).Databases}}
	default:
		return s.defragments(f, now)
	}
}

// wantsCare reports whether the policy enables defragmentation, and etcd has answered.
func (f *Facts) wantsCare() bool {
	p := &f.Policy
	return p.Defragmentation.Wanted && !p.DryRun && p.Name != "" && p.Unreadable == "" && f.isControlPlane() && f.Etcd != nil && f.Etcd.Err == ""
}

// defragments starts the defragmentation of the first member that needs it, or records why none may start.
func (s *State) defragments(f *Facts, now time.Time) []Event {
	m := s.fragmented(f, now)
	if m == nil {
		return nil
	}
	why := s.hinders(f)
	switch {
	case why != "" && why != s.Care.Waits:
		return []Event{DefragmentationWaits{Node: m.Node, Reason: why}}
	case why != "", f.Care.Elsewhere != "", now.Before(s.careFrom(f)):
		return nil
	}
	return []Event{DefragmentationStarted{
		Node: m.Node, Leader: m.Leader, Before: m.database(), Until: now.Add(f.Policy.Defragmentation.Deadline),
		Reason: fmt.Sprintf("its database has at least %s, and %d %% of it are free", binary(f.Policy.Defragmentation.MinSize), f.Policy.Defragmentation.FreePercent),
	}}
}

// AwaitsCare reports whether an etcd member must be defragmented and waits only for other etcds.
func AwaitsCare(s *State, f *Facts, now time.Time) bool {
	return f.wantsCare() && s.Care.Active == nil && f.Care.Elsewhere != "" && s.fragmented(f, now) != nil && s.hinders(f) == "" && !now.Before(s.careFrom(f))
}

// careFrom returns the time from which the next member may be defragmented.
func (s *State) careFrom(f *Facts) time.Time {
	switch {
	case s.Care.EndedAt.IsZero():
		return time.Time{}
	case s.Care.Failed:
		return s.Care.EndedAt.Add(max(careAgain, f.Policy.Defragmentation.Pause))
	default:
		return s.Care.EndedAt.Add(f.Policy.Defragmentation.Pause)
	}
}

// fragmented returns the member that must be defragmented first, or nil. Followers come first in the order of their names, then the leader.
func (s *State) fragmented(f *Facts, now time.Time) *Member {
	d := f.Policy.Defragmentation
	var found []*Member
	for i := range f.Etcd.Members {
		m := &f.Etcd.Members[i]
		done, ok := s.Care.Done[m.Node]
		if m.Size > 0 && m.Size >= d.MinSize && m.Size-m.InUse >= m.Size/100*int64(d.FreePercent) && (!ok || !now.Before(done.Add(careAgain))) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(count(a.Leader), count(b.Leader)), cmp.Compare(a.Node, b.Node))
	})
}

// mayBegin reports whether neither a move, a pause nor a pause request prevents scute from starting anything.
func (f *Facts) mayBegin() bool {
	return f.Move == "" && !f.Cluster.Paused && !f.Owner.Paused && !f.pauseRequested()
}

// hinders returns why no member of the etcd may be defragmented now, or "". With the alarm NOSPACE, unhealthy machines are no reason, because a full
// database makes them unhealthy and a defragmentation helps.
func (s *State) hinders(f *Facts) string {
	q, full := Count(f.Etcd), len(f.Etcd.alarmed("NOSPACE")) > 0
	switch {
	case !f.mayBegin():
		return "the cluster is moved or paused, or there is a pause request"
	case f.Owner.Deleting || f.Cluster.Deleting:
		return f.Owner.Name + " is being deleted"
	case s.Active != nil:
		return unwell(s.Active.Victim.Name)
	case s.escalating() != nil:
		return "an escalation step is tried for machine " + s.escalating().Name
	case f.Cluster.Reach != object.True:
		return "the API server of the cluster does not answer"
	case f.Etcd == nil || f.Etcd.Err != "" || q.Voters == 0:
		return "the members of etcd could not be listed"
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
		return f.Owner.Name + " is remediating a machine by itself"
	case f.leaving() > 0 || int(f.wanted()) != len(f.Machines) || int(f.Owner.Replicas) != len(f.Machines) || len(f.Etcd.Members) != len(f.Machines):
		return "machines or members of etcd are added or removed"
	}
	for m := range f.all() {
		u := s.Unhealthy[m.UID]
		switch {
		case f.Etcd.member(m) == nil:
			return "machine " + m.Name + " has no member of etcd"
		case !full && (u != nil && u.Mark != nil || len(m.broken(false)) > 0):
			return unwell(m.Name)
		}
	}
	return ""
}

func unwell(machine string) string {
	return "machine " + machine + " is not healthy, or is being replaced"
}

// ends returns how a defragmentation ended, or nil before that. If the database has become smaller, the member was defragmented by some process.
func (d *Defragmenting) ends(f *Facts, now time.Time) []Event {
	end := DefragmentationEnded{Node: d.Node, Before: d.Before}
	expired := !now.Before(d.overBy())
	tried := f.Care.Tried.Equal(d.Until)
	var m *Member
	if f.Etcd != nil {
		m = find(f.Etcd.Members, func(m *Member) bool { return m.Node == d.Node })
	}
	if m != nil && m.Size > 0 {
		end.After = m.database()
	}
	switch answers := m.answering(); {
	case answers && (m.Size > 0 && m.Size < d.Before.Size || tried && f.Care.Err == ""):
		end.Outcome = DefragmentationDone
		if len(f.Etcd.alarmed("NOSPACE")) > 0 && !f.Policy.Defragmentation.Disarm {
			end.Next = "when all members have room again: etcdctl alarm disarm"
		}
	case answers && expired && tried: // not before the deadline, because it may continue after its connection ended
		end.Outcome, end.Reason = DefragmentationFailed, f.Care.Err
	case answers && expired:
		end.Outcome, end.Reason = DefragmentationFailed, "it was not carried out in time"
	case expired:
		end.Outcome, end.Reason = DefragmentationTimedOut, "the member could not be asked, or does not answer, since it was begun"
		end.Next = "see whether the member answers again: a large database takes minutes; if it does not, restart it"
	default:
		return nil
	}
	return []Event{end}
}

// roomAgain reports whether etcd has the alarm NOSPACE although every member's database is far enough below its quota.
func (f *Facts) roomAgain() bool {
	return len(f.Etcd.alarmed("NOSPACE")) > 0 && !slices.ContainsFunc(f.Etcd.Members, func(m Member) bool {
		return m.Quota == 0 || m.Size == 0 || m.database().nearQuota(true)
	})
}

// caring returns the writes to etcd that are due.
func caring(s *State, f *Facts, now time.Time) []Action {
	c := &s.Care
	switch {
	case f.Etcd == nil:
		return nil
	case c.Active != nil && now.Before(c.Active.overBy()) && !f.Care.Tried.Equal(c.Active.Until):
		if m := f.claimed(Member{Node: c.Active.Node}); m != nil {
			return []Action{{Type: Defragment, Machine: m.subject(), Value: m.Node, To: f.successor(m.Node), Size: c.Active.Before.Size, Until: c.Active.Until, For: c.Active.overBy().Sub(now)}}
		}
	case !c.DisarmedAt.IsZero() && now.Before(c.DisarmedAt.Add(disarmFor)) && f.roomAgain():
		return []Action{{Type: Disarm}}
	}
	return nil
}

// successor returns the node of the member that leads while the leader on a node is defragmented, because all clients would wait for that leader. It
// returns "" if the member on the node does not lead, or no other member can.
func (f *Facts) successor(node string) string {
	to := ""
	for _, m := range f.Etcd.Members {
		switch {
		case m.Node == node && !m.Leader:
			return ""
		case m.Node != node && to == "" && m.answering() && !m.Learner:
			to = m.Node
		}
	}
	return to
}

// occupied returns the wait for a member that is being defragmented. It does not answer meanwhile, and is not at fault.
func (s *State) occupied() *Decision {
	if s.Care.Active == nil {
		return nil
	}
	return wait("defragmentation", "the member of etcd on %s is being defragmented; that ends by %s", s.Care.Active.Node, s.Care.Active.overBy().UTC().Format(time.RFC3339))
}

// careIn returns how long until etcd must be asked for a defragmentation in progress, or for the next one; ok is false for never.
func (s *State) careIn(f *Facts, now time.Time) (in time.Duration, ok bool) {
	if s.Care.Active != nil {
		return 0, true
	}
	if c := f.Care; !c.Queued.IsZero() {
		switch {
		case c.Elsewhere == "":
			return 0, true
		case c.Free.After(now):
			return c.Free.Sub(now), true
		default:
			return lookAgain, true
		}
	}
	next := s.careFrom(f)
	if !f.Policy.Defragmentation.Wanted || next.IsZero() || next.Before(f.Asked.First) || !f.Asked.Last.Before(next) {
		return 0, false
	}
	return max(0, next.Sub(now)), true
}

// OccupiedUntil returns when the defragmentation of a member of the owner's etcd ends at the latest, even if the process that started it stops; zero
// for none.
func OccupiedUntil(s *State) time.Time {
	if s.Care.Active == nil {
		return time.Time{}
	}
	return s.Care.Active.overBy()
}

// take applies an event about databases to the state.
func (c *EtcdCare) take(e Event, at time.Time) {
	switch e := e.(type) {
	case DefragmentationWaits:
		c.Waits = e.Reason
	case DefragmentationStarted:
		c.Active, c.Waits = &Defragmenting{DefragmentationStarted: e, At: at, For: e.Until.Sub(at)}, ""
	case DefragmentationEnded:
		c.Active, c.EndedAt, c.Failed = nil, at, e.Outcome != DefragmentationDone
		for node, done := range c.Done {
			if at.Sub(done) >= careAgain {
				delete(c.Done, node)
			}
		}
		if !c.Failed {
			if c.Done == nil {
				c.Done = make(map[string]time.Time)
			}
			c.Done[e.Node] = at
		}
	case NoSpaceDisarmed:
		c.DisarmedAt = at
	case EtcdReported:
		if !slices.ContainsFunc(e.Problems, func(p EtcdProblem) bool { return p.Kind == v1alpha1.EtcdNoSpace }) {
			c.DisarmedAt = time.Time{}
		}
	}
}
