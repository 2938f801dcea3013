package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/version"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const (
	maxParallel = 9
	// maxMembers limits the list of members, because the tenant controls the list and each listed
	// member is queried and shown. A real etcd has fewer than ten.
	maxMembers    = 63
	maxNameLength = 253
	maxAlarms     = 2 * maxMembers
)

type answer struct {
	node    string
	route   route // by which the member was queried
	answers object.ConditionStatus
	reason  string
	version string         // of etcd
	id      uint64         // of the member that responded
	leader  uint64         // as the member reports
	list    []*etcd.Member // confirmed by a majority
	stale   []*etcd.Member // stored by the member, if it has no majority
	alarms  []*etcd.AlarmMember
	// size, inUse and quota are in bytes.
	size, inUse, quota int64
}

type responses struct {
	list   []*etcd.Member
	alarms []*etcd.AlarmMember
	each   []answer
}

func (d *dialer) survey(ctx context.Context, nodes []string) *remediator.Etcd {
	heard := d.queryMembers(ctx, nodes)
	if heard.list == nil {
		return &remediator.Etcd{Err: "no member could list the members: " + formatReasons(heard.each)}
	}
	return mergeAnswers(heard.list, heard.alarms, heard.each)
}

// queryMembers queries the members of etcd. It first queries the members on the nodes, then the
// listed members on other nodes, whose machines are gone but whose pods may still exist. Finally it
// queries, through peers, the members that did not respond.
func (d *dialer) queryMembers(ctx context.Context, nodes []string) responses {
	heard := responses{each: d.queryNodes(ctx, nodes)}
	if heard.list, heard.alarms = agreedMembers(heard.each); heard.list == nil {
		return heard
	}
	var others []string
	for _, m := range heard.list {
		if m.Name != "" && !slices.Contains(nodes, m.Name) {
			others = append(others, m.Name)
		}
	}
	heard.each = append(heard.each, d.queryNodes(ctx, others)...)
	discardForeign(heard.list, heard.each)
	d.queryPeers(ctx, heard.list, heard.each)
	return heard
}

func (d *dialer) queryNodes(ctx context.Context, nodes []string) []answer {
	answers := make([]answer, len(nodes))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, node := range nodes {
		group.Go(func() error {
			if answers[i] = (answer{node: node, answers: object.Unknown, reason: notQueried}); ctx.Err() == nil {
				answers[i] = d.query(ctx, node)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the answers
	return answers
}

// discardForeign replaces each answer that did not come from the node's listed member by Unknown. A
// removed member may still run on the node, or another member may now have the node's address.
func discardForeign(list []*etcd.Member, answers []answer) {
	for i := range answers {
		a := &answers[i]
		if m := memberNamed(list, answers, a.node); m != nil && a.answers == object.True && a.id != m.ID {
			*a = answer{node: a.node, route: a.route, answers: object.Unknown, reason: fmt.Sprintf("member %x answers instead of member %x", a.id, m.ID)}
		}
	}
}

// memberNamed returns the listed member with the name of a node, or nil. Two members have the same
// name if a machine was recreated with the same host name and the old member was not removed. In
// that case, memberNamed returns the member that responded, or else the reported leader, which is
// alive.
func memberNamed(list []*etcd.Member, answers []answer, node string) *etcd.Member {
	var first *etcd.Member
	for _, m := range list {
		if m.Name != node {
			continue
		}
		if slices.ContainsFunc(answers, func(a answer) bool { return a.node == node && a.id == m.ID }) {
			return m
		}
		if first == nil || m.ID == reportedLeader(answers) {
			first = m
		}
	}
	return first
}

func (l *line) query(ctx context.Context, a answer) answer {
	cluster, maintenance := etcd.NewClusterClient(l.ClientConn), etcd.NewMaintenanceClient(l.ClientConn)
	said, err := maintenance.Status(ctx, &etcd.StatusRequest{})
	if err != nil {
		a.answers, a.reason = l.classify(err)
		return a
	}
	a.version = said.Version
	agreed, cancel := halfTimeout(ctx)
	defer cancel()
	list, err := cluster.MemberList(agreed, &etcd.MemberListRequest{Linearizable: true})
	if err == nil {
		a.list = list.Members
	} else if list, err = cluster.MemberList(ctx, &etcd.MemberListRequest{}); err == nil {
		a.stale = list.Members
	}
	if tooLarge(err) || !plausible(list.GetMembers()) {
		a.setStatus(said, nil)
		a.answers, a.list, a.stale = object.False, nil, nil
		a.reason = fmt.Sprintf("its list of members is invalid: it has more than %d members, or a name of more than %d bytes or with characters that cannot be printed", maxMembers, maxNameLength)
		return a
	}
	complaints := said.Errors
	if alarm, err := maintenance.Alarm(ctx, &etcd.AlarmRequest{Action: etcd.AlarmRequest_GET}); err == nil {
		a.alarms, complaints = alarm.Alarms[:min(len(alarm.Alarms), maxAlarms)], ownErrors(complaints)
	}
	a.setStatus(said, complaints)
	return a
}

// setStatus sets the fields of an answer from the status that a member reported. A member with
// complaints is unhealthy.
func (a *answer) setStatus(said *etcd.StatusResponse, complaints []string) {
	a.answers, a.id, a.leader = object.True, said.Header.GetMemberId(), said.Leader
	a.size, a.inUse, a.quota = max(0, said.DbSize), max(0, said.DbSizeInUse), max(0, said.DbSizeQuota)
	if len(complaints) > 0 {
		a.answers, a.reason = object.False, shorten(errors.New(strings.Join(complaints, "; ")))
	}
}

// halfTimeout returns a context with half of the remaining time. A member without a quorum does not
// answer a linearizable request, and the other half remains for a serializable request.
func halfTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithCancel(ctx)
}

func plausible(list []*etcd.Member) bool {
	return len(list) <= maxMembers && !slices.ContainsFunc(list, func(m *etcd.Member) bool {
		return len(m.Name) > maxNameLength || m.Name != object.Printable(m.Name)
	})
}

func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// ownErrors returns the errors in a member's status, except for alarms. Each member reports the
// alarms of all members; mergeAnswers assigns them to their members.
func ownErrors(errs []string) []string {
	return slices.DeleteFunc(slices.Clone(errs), func(e string) bool { return strings.Contains(e, "alarm:") })
}

// agreedMembers returns the list of members that a majority has confirmed, and the alarms. If there
// is no majority, it returns the longest list that any member reports, so that users see which
// members are lost.
func agreedMembers(answers []answer) (list []*etcd.Member, alarms []*etcd.AlarmMember) {
	for _, a := range answers {
		if len(a.list) > 0 && a.answers == object.True {
			return a.list, a.alarms
		}
	}
	for _, a := range answers {
		for _, remembered := range [][]*etcd.Member{a.list, a.stale} {
			if len(remembered) > len(list) {
				list, alarms = remembered, a.alarms
			}
		}
	}
	return list, alarms
}

// mergeAnswers returns the listed members with their answers. It omits answers of members that are
// not listed, because removed members do not count for quorum.
func mergeAnswers(list []*etcd.Member, alarms []*etcd.AlarmMember, answers []answer) *remediator.Etcd {
	leader := reportedLeader(answers)
	names := make(map[uint64]string, len(list))
	found := &remediator.Etcd{AddsByQuorum: addsByQuorum(answers)}
	for _, m := range list {
		f := remediator.Member{Node: m.Name, Learner: m.IsLearner, Leader: leader != 0 && m.ID == leader, Answers: object.Unknown}
		if m.Name == "" {
			f.Node, f.Unstarted, f.Answers, f.Reason = "member "+strconv.FormatUint(m.ID, 16), true, object.False, "it was added, and has not started yet"
		}
		holder := memberNamed(list, answers, m.Name)
		if m.Name != "" && holder != m {
			f.Node, f.Namesake, f.Answers = fmt.Sprintf("member %x of %s", m.ID, m.Name), m.Name, object.False
			f.Reason = fmt.Sprintf("member %x has its name", holder.ID)
		}
		names[m.ID] = f.Node
		if i := slices.IndexFunc(answers, func(a answer) bool { return holder == m && a.node == m.Name }); i >= 0 {
			f.Answers, f.Reason = answers[i].answers, answers[i].reason
			if answers[i].responded() {
				f.Via = answers[i].route.String()
				f.Size, f.InUse, f.Quota = answers[i].size, answers[i].inUse, answers[i].quota
			}
		}
		for _, alarm := range alarms {
			// A member without space still serves reads and votes. A member with corrupt data does
			// not count as healthy.
			if alarm.MemberID == m.ID && alarm.Alarm == etcd.AlarmType_CORRUPT && f.Answers == object.True {
				f.Answers, f.Reason = object.False, "alarm "+alarm.Alarm.String()
			}
		}
		found.Members = append(found.Members, f)
	}
	slices.SortFunc(found.Members, func(a, b remediator.Member) int { return strings.Compare(a.Node, b.Node) })
	for _, alarm := range alarms {
		if alarm.Alarm != etcd.AlarmType_NONE {
			found.Alarms = append(found.Alarms, alarm.Alarm.String()+" of "+cmp.Or(names[alarm.MemberID], "member "+strconv.FormatUint(alarm.MemberID, 16)))
		}
	}
	slices.Sort(found.Alarms)
	return found
}

// addsByQuorum reports whether all healthy members run a version that accepts a new member while
// only a majority is connected (mayAddMember in etcd's server, from 3.6.11).
func addsByQuorum(answers []answer) bool {
	known := false
	for _, a := range answers {
		if a.answers != object.True {
			continue
		}
		v, err := version.ParseSemantic(a.version)
		if err != nil || v.LessThan(version.MustParseSemantic("3.6.11")) {
			return false
		}
		known = true
	}
	return known
}

// reportedLeader returns the ID of the leader that most healthy members report, or 0 if none
// reports a leader.
func reportedLeader(answers []answer) uint64 {
	votes := make(map[uint64]int)
	leader := uint64(0)
	for _, a := range answers {
		if a.answers != object.True || a.leader == 0 {
			continue
		}
		votes[a.leader]++
		if votes[a.leader] > votes[leader] {
			leader = a.leader
		}
	}
	return leader
}

func formatReasons(answers []answer) string {
	var all []string
	for _, a := range answers[:min(len(answers), maxParallel)] {
		all = append(all, a.node+": "+cmp.Or(a.reason, "no list"))
	}
	if more := len(answers) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// moveLeader asks the leader, which is the only member that can transfer the leadership, to
// transfer it to the member on node to. It uses the route on which the leader responded.
func (d *dialer) moveLeader(ctx context.Context, nodes []string, to string) error {
	heard := d.queryMembers(ctx, nodes)
	leader, target := reportedLeader(heard.each), memberNamed(heard.list, heard.each, to)
	switch {
	case target == nil:
		return fmt.Errorf("etcd lists no member on its node: %s", formatReasons(heard.each))
	case leader == 0:
		return fmt.Errorf("no leader is known: %s", formatReasons(heard.each))
	case target.ID == leader:
		return nil
	case target.IsLearner:
		return errors.New("its member is a learner")
	}
	i := slices.IndexFunc(heard.list, func(m *etcd.Member) bool { return m.ID == leader })
	if i < 0 {
		return errors.New("the leader is not in the list of members")
	}
	from := heard.list[i]
	j := slices.IndexFunc(heard.each, func(a answer) bool { return a.node == from.Name })
	if j < 0 || !heard.each[j].responded() {
		return fmt.Errorf("the leader on %s could not be reached: %s", from.Name, formatReasons(heard.each))
	}
	if err := d.transferLeadership(ctx, from, heard.each[j].route, target.ID); err != nil {
		return fmt.Errorf("asking the leader on %s (%s): %w", from.Name, heard.each[j].route, err)
	}
	return nil
}

func (d *dialer) transferLeadership(ctx context.Context, leader *etcd.Member, by route, to uint64) error {
	if err := d.cluster.CheckWritesAllowed(); err != nil {
		return err
	}
	if by.peer != "" {
		_, err := d.etcdctl(ctx, by.peer, clientURL(leader), "move-leader", strconv.FormatUint(to, 16))
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.member)
	defer cancel()
	line, err := d.open(ctx, leader.Name, by)
	if err != nil {
		return err
	}
	defer line.Close()
	if _, err := etcd.NewMaintenanceClient(line.ClientConn).MoveLeader(ctx, &etcd.MoveLeaderRequest{TargetID: to}); err != nil {
		_, why := line.classify(err)
		return errors.New(why)
	}
	return nil
}
