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
	// atOnce bounds the members asked at the same time.
	atOnce = 9
	// An etcd has a handful of members, each with the name of a node. The tenant whose etcd it is may have it list more:
	// every one would be asked, and shown.
	mostMembers = 63
	longestName = 253
	mostAlarms  = 2 * mostMembers
)

// answer of one member, asked itself.
type answer struct {
	node    string
	way     way // by which it was asked
	answers object.Truth
	why     string
	version string         // of its etcd
	id      uint64         // of the member that answered
	leader  uint64         // as it says
	list    []*etcd.Member // as its majority has it
	stale   []*etcd.Member // as it remembers it, where it has no majority
	alarms  []*etcd.AlarmMember
	// size of its database, how much of it is in use, and its quota, in bytes.
	size, inUse, quota int64
}

// responses are what was heard from all members.
type responses struct {
	list   []*etcd.Member
	alarms []*etcd.AlarmMember
	each   []answer
}

// survey asks the members on the nodes, and those that they list.
func (d *dialer) survey(ctx context.Context, nodes []string) *remediator.Etcd {
	heard := d.askEverybody(ctx, nodes)
	if heard.list == nil {
		return &remediator.Etcd{Err: "no member could list the members: " + whys(heard.each)}
	}
	return conclude(heard.list, heard.alarms, heard.each)
}

// askEverybody asks the members on the nodes; then those that they list and no machine has, whose pods may be there; then,
// of those that were not heard, their peers.
func (d *dialer) askEverybody(ctx context.Context, nodes []string) responses {
	heard := responses{each: d.askAll(ctx, nodes)}
	if heard.list, heard.alarms = listed(heard.each); heard.list == nil {
		return heard
	}
	var others []string
	for _, m := range heard.list {
		if m.Name != "" && !slices.Contains(nodes, m.Name) {
			others = append(others, m.Name)
		}
	}
	heard.each = append(heard.each, d.askAll(ctx, others)...)
	identify(heard.list, heard.each)
	d.askPeers(ctx, heard.list, heard.each)
	return heard
}

func (d *dialer) askAll(ctx context.Context, nodes []string) []answer {
	answers := make([]answer, len(nodes))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, node := range nodes {
		group.Go(func() error {
			if answers[i] = (answer{node: node, answers: object.Unknown, why: tooLate}); ctx.Err() == nil {
				answers[i] = d.ask(ctx, node)
			}
			return nil
		})
	}
	_ = group.Wait() // there is no error: each is in its answer
	return answers
}

// identify takes back what another member than that of the node has answered: one that was removed and still runs, or one
// that has the node's address now.
func identify(list []*etcd.Member, answers []answer) {
	for i := range answers {
		a := &answers[i]
		if m := named(list, answers, a.node); m != nil && a.answers == object.True && a.id != m.ID {
			*a = answer{node: a.node, way: a.way, answers: object.Unknown, why: fmt.Sprintf("member %x answers in the place of member %x", a.id, m.ID)}
		}
	}
}

// named returns the member that has the name of a node, nil without. A machine that was made again with its old host name has two of that
// name in the list if the old one was not removed: the one that answered is the machine's, or else the leader, which is alive.
func named(list []*etcd.Member, answers []answer, node string) *etcd.Member {
	var first *etcd.Member
	for _, m := range list {
		if m.Name != node {
			continue
		}
		if slices.ContainsFunc(answers, func(a answer) bool { return a.node == node && a.id == m.ID }) {
			return m
		}
		if first == nil || m.ID == elected(answers) {
			first = m
		}
	}
	return first
}

// inquire asks the member at the other end.
func (l *line) inquire(ctx context.Context, a answer) answer {
	cluster, maintenance := etcd.NewClusterClient(l.ClientConn), etcd.NewMaintenanceClient(l.ClientConn)
	said, err := maintenance.Status(ctx, &etcd.StatusRequest{})
	if err != nil {
		a.answers, a.why = l.meaning(err)
		return a
	}
	a.answers, a.id, a.leader, a.version = object.True, said.Header.GetMemberId(), said.Leader, said.Version
	a.size, a.inUse, a.quota = max(0, said.DbSize), max(0, said.DbSizeInUse), max(0, said.DbSizeQuota)
	agreed, cancel := half(ctx)
	defer cancel()
	list, err := cluster.MemberList(agreed, &etcd.MemberListRequest{Linearizable: true})
	if err == nil {
		a.list = list.Members
	} else if list, err = cluster.MemberList(ctx, &etcd.MemberListRequest{}); err == nil {
		a.stale = list.Members
	}
	if tooLarge(err) || !credible(list.GetMembers()) {
		a.answers, a.list, a.stale = object.False, nil, nil
		a.why = fmt.Sprintf("its list of members is not credible: more than %d, or one whose name has more than %d bytes or cannot be printed", mostMembers, longestName)
		return a
	}
	complaints := said.Errors
	if alarm, err := maintenance.Alarm(ctx, &etcd.AlarmRequest{Action: etcd.AlarmRequest_GET}); err == nil {
		a.alarms, complaints = alarm.Alarms[:min(len(alarm.Alarms), mostAlarms)], ownComplaints(complaints)
	}
	if len(complaints) > 0 {
		a.answers, a.why = object.False, brief(errors.New(strings.Join(complaints, "; ")))
	}
	return a
}

// half of the time that is left. A member without a majority leaves a question that needs one unanswered, until it ends.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithCancel(ctx)
}

// credible says whether an etcd may have these members.
func credible(list []*etcd.Member) bool {
	return len(list) <= mostMembers && !slices.ContainsFunc(list, func(m *etcd.Member) bool {
		return len(m.Name) > longestName || m.Name != object.Printable(m.Name)
	})
}

// tooLarge says that an answer was more than is read.
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// ownComplaints are those of a status that are about the member itself. Every member tells the alarms of all: conclude
// gives each to its own.
func ownComplaints(errs []string) []string {
	return slices.DeleteFunc(slices.Clone(errs), func(e string) bool { return strings.Contains(e, "alarm:") })
}

// listed is the list of members that a majority agrees on; without one, the longest list of any member, so that what is
// lost can be shown.
func listed(answers []answer) (list []*etcd.Member, alarms []*etcd.AlarmMember) {
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

// conclude joins the list with what each member answered. It lists only members that etcd lists: a node whose member
// was removed has none, and quorum is counted without it.
func conclude(list []*etcd.Member, alarms []*etcd.AlarmMember, answers []answer) *remediator.Etcd {
	leader := elected(answers)
	names := make(map[uint64]string, len(list))
	found := &remediator.Etcd{ByQuorum: addsByQuorum(answers)}
	for _, m := range list {
		f := remediator.Member{Node: m.Name, Learner: m.IsLearner, Leader: leader != 0 && m.ID == leader, Answers: object.Unknown}
		if m.Name == "" {
			f.Node, f.Unstarted, f.Answers, f.Why = "member "+strconv.FormatUint(m.ID, 16), true, object.False, "it was added, and has not started yet"
		}
		holder := named(list, answers, m.Name)
		if m.Name != "" && holder != m {
			f.Node, f.Namesake, f.Answers = fmt.Sprintf("member %x of %s", m.ID, m.Name), m.Name, object.False
			f.Why = fmt.Sprintf("member %x has its name", holder.ID)
		}
		names[m.ID] = f.Node
		if i := slices.IndexFunc(answers, func(a answer) bool { return holder == m && a.node == m.Name }); i >= 0 {
			f.Answers, f.Why = answers[i].answers, answers[i].why
			if answers[i].spoke() {
				f.Way = answers[i].way.String()
				f.Size, f.InUse, f.Quota = answers[i].size, answers[i].inUse, answers[i].quota
			}
		}
		for _, alarm := range alarms {
			// One without space answers reads and votes; of one whose data are corrupt no answer counts.
			if alarm.MemberID == m.ID && alarm.Alarm == etcd.AlarmType_CORRUPT && f.Answers == object.True {
				f.Answers, f.Why = object.False, "alarm "+alarm.Alarm.String()
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

// addsByQuorum reports whether all members that answered are of a version which accepts a new member while a majority is connected
// (mayAddMember in etcd's server, from 3.6.11).
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

// elected is the leader that most members name, of those that are well; 0 without one.
func elected(answers []answer) uint64 {
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

// whys are the reasons of as many members as are asked at once.
func whys(answers []answer) string {
	var all []string
	for _, a := range answers[:min(len(answers), atOnce)] {
		all = append(all, a.node+": "+cmp.Or(a.why, "no list"))
	}
	if more := len(answers) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// moveLeader asks the leader, which alone can do it, by the way by which it answers.
func (d *dialer) moveLeader(ctx context.Context, nodes []string, to string) error {
	heard := d.askEverybody(ctx, nodes)
	leader, target := elected(heard.each), named(heard.list, heard.each, to)
	switch {
	case target == nil:
		return fmt.Errorf("it has no member: %s", whys(heard.each))
	case leader == 0:
		return fmt.Errorf("no leader is known: %s", whys(heard.each))
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
	if j < 0 || !heard.each[j].spoke() {
		return fmt.Errorf("the leader on %s could not be asked: %s", from.Name, whys(heard.each))
	}
	if err := d.resign(ctx, from, heard.each[j].way, target.ID); err != nil {
		return fmt.Errorf("asking the leader on %s (%s): %w", from.Name, heard.each[j].way, err)
	}
	return nil
}

// resign has the leader hand over to another member.
func (d *dialer) resign(ctx context.Context, leader *etcd.Member, by way, to uint64) error {
	if err := d.cluster.Held(); err != nil {
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
		_, why := line.meaning(err)
		return errors.New(why)
	}
	return nil
}
