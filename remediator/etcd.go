package remediator

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/view"
)

// Database contains the sizes of the database of one etcd member, in bytes.
type Database struct {
	Node string `json:"node"`
	// Size is the size on disk, which counts toward the quota. InUse is the part of it that holds
	// data.
	Size  int64 `json:"size"`
	InUse int64 `json:"inUse"`
	// Quota is 0 if the member does not report it, as before etcd 3.6.
	Quota int64 `json:"quota,omitempty"`
}

// EtcdProblem is a kind of problem of etcd, with the members that have it.
type EtcdProblem struct {
	Kind    v1alpha1.EtcdProblemKind `json:"kind"`
	Members []string                 `json:"members"`
}

// etcdReport is the last recorded report of etcd's members. At is zero if there is none.
type etcdReport struct {
	EtcdReported
	At time.Time
}

const (
	// A database becomes near its quota at nearQuotaPercent percent of it, and stays near until it
	// is below belowQuotaPercent percent.
	nearQuotaPercent, belowQuotaPercent = 80, 75
	// A database of at least fragmentedSize bytes becomes fragmented when at least
	// fragmentedPercent percent are free. It stays fragmented until less than defragmentedPercent
	// percent are free. The numbers are the thresholds of OpenShift's etcd operator.
	fragmentedSize                         = 100 << 20
	fragmentedPercent, defragmentedPercent = 45, 40
	// alarmInterval is the longest interval between two requests to etcd while it may have an
	// alarm. sizeInterval is the longest interval while it has any problem.
	alarmInterval, sizeInterval = 5 * time.Minute, time.Hour
)

// EtcdRequests contains the times at which this process sent requests to etcd. The log does not
// contain them.
type EtcdRequests struct {
	// Last is the time of the last request, zero for never. First is the time of the owner's first
	// turn in this process.
	Last, First time.Time
	// Before is the time of the request before Last.
	Before time.Time
	// Blind reports whether the last request failed.
	Blind bool
}

// recordEtcd returns an event if the problems of etcd have changed. If the policy enables surveys,
// it also returns one if the leader, the learners or the size of a database has changed.
func recordEtcd(s *State, f *Facts, _ time.Time) []Event {
	if !f.isControlPlane() || f.Etcd == nil || len(f.Etcd.Members) == 0 || f.Policy.Name == "" || f.Policy.Unreadable != "" {
		return nil
	}
	now := f.Etcd.report(s.Etcd)
	return eventIf(!s.Etcd.matches(now, f.Policy.Survey > 0), now)
}

// matches reports whether the recorded report equals the present report: in its problems and, if
// surveyed is true, in its other facts, with sizes compared by band.
func (r etcdReport) matches(now EtcdReported, surveyed bool) bool {
	same := slices.EqualFunc(r.Problems, now.Problems, func(a, b EtcdProblem) bool { return a.Kind == b.Kind && slices.Equal(a.Members, b.Members) })
	if !surveyed {
		return same
	}
	return same && !r.At.IsZero() && r.Leader == now.Leader && slices.Equal(r.Learners, now.Learners) &&
		slices.EqualFunc(r.Databases, now.Databases, func(a, b Database) bool { return a.Node == b.Node && a.band() == b.band() })
}

// band returns the size in tenths of the quota, or the binary logarithm of the size if the quota is
// unknown. A growing database is recorded when its band changes.
func (d Database) band() int64 {
	if d.Quota > 0 {
		return int64(float64(d.Size) / float64(d.Quota) * 10)
	}
	return int64(math.Log2(float64(max(d.Size, fragmentedSize))))
}

// report returns a report of what the members answered. For a member that does not answer, it
// contains the database from the report before.
func (e *Etcd) report(before etcdReport) EtcdReported {
	var r EtcdReported
	r.Leader, r.Learners = e.roles()
	for _, m := range e.Members {
		switch db := m.database(); {
		case db.Size > 0:
			r.Databases = append(r.Databases, db)
		case m.Answers != object.True:
			if db := find(before.Databases, func(d *Database) bool { return d.Node == m.Node }); db != nil {
				r.Databases = append(r.Databases, *db)
			}
		}
	}
	for _, problem := range []EtcdProblem{
		{Kind: v1alpha1.EtcdCorrupt, Members: e.alarmed("CORRUPT")},
		{Kind: v1alpha1.EtcdNoSpace, Members: e.alarmed("NOSPACE")},
		{Kind: v1alpha1.EtcdNearQuota, Members: r.membersWith(before, v1alpha1.EtcdNearQuota, nearQuotaPercent, belowQuotaPercent, Database.nearQuota)},
		{Kind: v1alpha1.EtcdFragmented, Members: r.membersWith(before, v1alpha1.EtcdFragmented, fragmentedPercent, defragmentedPercent, Database.fragmented)},
	} {
		if len(problem.Members) > 0 {
			r.Problems = append(r.Problems, problem)
		}
	}
	return r
}

// roles returns the nodes of the leader and of the learners.
func (e *Etcd) roles() (leader string, learners []string) {
	for _, m := range e.Members {
		if m.Leader {
			leader = m.Node
		}
		if m.Learner {
			learners = append(learners, m.Node)
		}
	}
	return leader, learners
}

// database returns the database of a member. Its Size is 0 if it is unknown.
func (m *Member) database() Database {
	return Database{Node: m.Node, Size: m.Size, InUse: m.InUse, Quota: m.Quota}
}

// membersWith returns the nodes of the members whose databases have a problem. The problem begins
// at the percentage from, and ends below the lower percentage until, so that a size near the limit
// is not recorded repeatedly.
func (r *EtcdReported) membersWith(before etcdReport, kind v1alpha1.EtcdProblemKind, from, until int64, has func(d Database, percent int64) bool) (nodes []string) {
	for _, d := range r.Databases {
		if has(d, from) || before.has(kind, d.Node) && has(d, until) {
			nodes = append(nodes, d.Node)
		}
	}
	return nodes
}

func (r etcdReport) has(kind v1alpha1.EtcdProblemKind, node string) bool {
	return slices.ContainsFunc(r.Problems, func(p EtcdProblem) bool { return p.Kind == kind && slices.Contains(p.Members, node) })
}

func (d Database) nearQuota(percent int64) bool {
	return d.Quota > 0 && d.Size >= d.Quota/100*percent
}

func (d Database) fragmented(percent int64) bool {
	return d.Size >= fragmentedSize && d.Size-d.InUse >= d.Size/100*percent
}

// surveyIn returns the time until the next query of etcd that is due even if no decision about a
// machine needs it. ok is false if no such query is due.
func (s *State) surveyIn(f *Facts, now time.Time) (in time.Duration, ok bool) {
	if !f.isControlPlane() || !f.Owner.Found || f.Owner.ExternalEtcd || f.Policy.Name == "" || f.Policy.Unreadable != "" ||
		f.Move != "" || f.Owner.Deleting || f.Cluster.Deleting || !slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Node != "" }) {
		return 0, false
	}
	pace := f.Policy.Survey
	alarm := s.Etcd.alarmed() || slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.reportedUnhealthy() })
	atMost := func(interval time.Duration, so bool) {
		if so && (pace == 0 || pace > interval) {
			pace = interval
		}
	}
	atMost(alarmInterval, alarm)
	atMost(f.guardInterval(), f.guardInterval() > 0)
	atMost(sizeInterval, len(s.Etcd.Problems) > 0)
	switch {
	case pace == 0:
		return 0, false
	case !f.EtcdRequests.Last.IsZero():
		return max(0, f.EtcdRequests.Last.Add(pace).Sub(now)), true
	case alarm:
		return 0, true
	default:
		return max(0, f.EtcdRequests.First.Add(initialDelay(f.Owner.ID(), pace)).Sub(now)), true
	}
}

func (r etcdReport) alarmed() bool {
	return slices.ContainsFunc(r.Problems, func(p EtcdProblem) bool { return p.Kind.Alarm() })
}

// reportedUnhealthy reports whether Cluster API reports the machine's etcd member as unhealthy
// although the machine's Node is ready, for example because of an alarm.
func (m *Machine) reportedUnhealthy() bool {
	return m.Conditions[controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition].Status == object.False &&
		m.Conditions[clusterv1.MachineNodeReadyCondition].Status == object.True
}

// initialDelay returns how long after the start of a process the etcd of an owner is first queried.
// The delay is less than interval and depends on the owner's ID, so that a starting process does
// not query all etcds at once.
func initialDelay(id string, interval time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(id))
	return time.Duration(float64(interval) * float64(h.Sum32()) / (1 << 32))
}

// EtcdStatus returns the problems of an owner's etcd for the status of a RepairPolicy.
func EtcdStatus(s *State) []v1alpha1.EtcdProblem {
	var list []v1alpha1.EtcdProblem
	for _, p := range s.Etcd.Problems {
		list = append(list, v1alpha1.EtcdProblem{
			Cluster: s.Owner.Cluster, ControlPlane: s.Owner.Name, Problem: p.Kind, Members: p.Members,
			Message: s.Etcd.describe(p), Next: etcdProblems[p.Kind].next, Since: metav1.Time{Time: s.Etcd.At},
		})
	}
	return list
}

// etcdProblems contains, for each kind of problem, a format of its description, whose argument is
// the affected members, and advice for a human. The guide describes how to run etcdctl.
var etcdProblems = map[v1alpha1.EtcdProblemKind]struct{ text, next string }{
	v1alpha1.EtcdNoSpace: {
		"etcd has the alarm NOSPACE on %s: its database is full, and no member accepts writes",
		"compact, defragment and disarm: run etcdctl compact REVISION (it is in etcdctl endpoint status -w json), etcdctl defrag --cluster, etcdctl alarm disarm",
	},
	v1alpha1.EtcdCorrupt: {
		"etcd has the alarm CORRUPT on %s: its data differs from that of the other members, and no member answers requests",
		"compare the members (etcdctl endpoint hashkv --cluster), stop the corrupt one and remove it (etcdctl member remove), " +
			"disarm the alarm (etcdctl alarm disarm), then delete its machine",
	},
	v1alpha1.EtcdNearQuota: {
		"the database of etcd on %s is near its quota, at which no member accepts writes",
		"find out what fills the database, compact and defragment it (etcdctl compact REVISION, etcdctl defrag --cluster), or raise --quota-backend-bytes",
	},
	v1alpha1.EtcdFragmented: {
		"the database of etcd on %s has much free space, which counts for its quota",
		"defragment one member after another, the leader last (etcdctl defrag); a member answers no requests meanwhile",
	},
}

func (p EtcdProblem) text() string {
	known, ok := etcdProblems[p.Kind]
	if !ok {
		return string(p.Kind) + " on " + strings.Join(p.Members, ", ")
	}
	return fmt.Sprintf(known.text, strings.Join(p.Members, ", "))
}

// describe returns a description of a problem and, except for an alarm, of the affected databases.
func (r EtcdReported) describe(p EtcdProblem) string {
	if p.Kind.Alarm() {
		return p.text()
	}
	var told []string
	for _, d := range r.Databases {
		if slices.Contains(p.Members, d.Node) {
			told = append(told, d.Node+" "+d.String())
		}
	}
	return p.text() + ": " + strings.Join(told, ", ")
}

func (r EtcdReported) text() string {
	var parts []string
	for _, p := range r.Problems {
		parts = append(parts, p.text())
	}
	if len(parts) == 0 {
		parts = append(parts, "etcd has no problem")
	}
	if r.Leader != "" {
		parts = append(parts, "leader "+r.Leader)
	}
	if len(r.Learners) > 0 {
		parts = append(parts, "learners "+view.First(r.Learners))
	}
	for _, d := range r.Databases {
		parts = append(parts, d.Node+" "+d.String())
	}
	return strings.Join(parts, "; ")
}

func (r EtcdReported) advice() string {
	var list []string
	for _, p := range r.Problems {
		list = append(list, etcdProblems[p.Kind].next)
	}
	return view.Join(list...)
}

// adds reports whether a member has a problem of one of the kinds that it did not have in the
// report before.
func (r EtcdReported) adds(before etcdReport, kinds ...v1alpha1.EtcdProblemKind) bool {
	return slices.ContainsFunc(r.Problems, func(p EtcdProblem) bool {
		return slices.Contains(kinds, p.Kind) && slices.ContainsFunc(p.Members, func(node string) bool { return !before.has(p.Kind, node) })
	})
}

// String formats a size: "1.7 GiB of 2.0 GiB, 40 % in use".
func (d Database) String() string {
	out := formatSize(d.Size)
	if d.Quota > 0 {
		out += " of " + formatSize(d.Quota)
	}
	if d.Size > 0 {
		out += fmt.Sprintf(", %d %% in use", int(float64(d.InUse)/float64(d.Size)*100))
	}
	return out
}

func formatSize(n int64) string {
	const mebi, gibi = 1 << 20, 1 << 30
	if n >= gibi {
		return fmt.Sprintf("%.1f GiB", float64(n)/gibi)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mebi)
}
