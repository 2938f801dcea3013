package remediator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// components are the conditions of a control plane machine that its owner checks before it scales.
var components = []string{
	"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy",
}

const template = "template-1" // every machine of the owner is cloned from it

// world simulates an owner with its machines and their etcd, as far as the behaviour of real ones was measured. Rules
// can be tested as scripts against it, and the remediator against any combination of faults.
type world struct {
	// slow is how long a control plane's reconcile may take from choosing a machine to scale in until it deletes that
	// machine. delaysDeletion delays the next deletion, and chosen is the machine that was chosen at chosenAt.
	slow           time.Duration
	delaysDeletion bool
	chosen         *machine
	chosenAt       time.Time

	now                  time.Time
	owner                remediator.OwnerFacts
	cluster              remediator.ClusterFacts
	policy               remediator.Policy
	ledger               remediator.Ledger
	fleet                remediator.Fleet
	move                 string
	moving               bool // the older MachineSets move their machines to the current one
	byQuorum             bool // etcd accepts a new member while a majority is connected
	machines             []*machine
	made                 int
	etcdErr              string
	alarms               []string // of etcd, as in remediator.Etcd
	etcdRequests         remediator.EtcdRequests
	recorded             remediator.CreatedObjects // what the log records as created
	maintenance          remediator.MaintenanceFacts
	diesBeforeDefragment bool // the process dies before a defragmentation
	diesBeforeWrite      bool // the process dies before a write
	defragmentHangs      bool // a member that is being defragmented does not recover by itself
	// blindSince is the time since when all reads have failed, as the runner records it.
	blindSince time.Time
	target     string // the template that the owner clones from; changing it starts a rollout
	logf       func(format string, args ...any)

	// onlyKubelets means that etcd is asked only through kubelets, so a member behind a dead kubelet cannot be asked.
	onlyKubelets bool
	// onDelete is set for a MachineDeployment with the strategy OnDelete.
	onDelete bool
	// healthCheck means that a MachineHealthCheck selects the machines and creates the requests.
	healthCheck bool
	// staleStatus means that the Machine controller has not observed the last changes of Machines.
	staleStatus bool
	// orphans are members of etcd whose machines are gone.
	orphans []orphan
}

// orphan is a member of etcd without a machine.
type orphan struct {
	Name    string // "" for a learner that never started
	Learner bool
	// Namesake is the node of the same name, "" for none.
	Namesake string
}

// machine is a Machine together with its actual state.
type machine struct {
	remediator.Machine
	Kubelet, Pods, Etcd     bool   // alive
	Pressed                 bool   // its kubelet runs and reports the node as not ready
	Member, Learner, Leader bool   // of etcd
	EtcdUnreachable         bool   // its etcd cannot be asked, whether it runs or not
	Cut                     bool   // its etcd is disconnected, and only its kubelet can reach it
	NeverJoins              bool   // never joins
	FailsForeignCheck       bool   // its Node has a condition that only a MachineHealthCheck checks
	Updating                bool   // is being updated in place, forever
	Template                string // the template that it was actually cloned from
	MemberReportedUnhealthy bool   // Cluster API reports its member as unhealthy, because of an etcd alarm
	Database                remediator.Database
	Unobserved              bool // no watch has reported it yet
}

func newWorld(now time.Time) *world {
	return &world{
		now: now, target: template, logf: func(string, ...any) {},
		owner: remediator.OwnerFacts{
			Owner: remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "cp", UID: "0a0b0c0d-1111", Cluster: "blue"},
			Found: true, Observed: true, MaxSurge: 1, Version: "v1.35.0", Tested: true, CertificateTrigger: true,
			Retry: remediator.Retry{MinHealthy: time.Hour},
		},
		cluster: remediator.ClusterFacts{Found: true, Reachable: object.True, FailureDomains: []string{"a", "b", "c"}},
		policy: remediator.Policy{
			Name: "default", UID: "policy",
			Checks: remediator.Checks{
				NodeStartup: 10 * time.Minute,
				Node: []remediator.Check{
					{Type: "Ready", Status: object.False, Timeout: 5 * time.Minute}, {Type: "Ready", Status: object.Unknown, Timeout: 5 * time.Minute},
				},
			},
			Methods: map[v1alpha1.RepairMethod]bool{
				v1alpha1.MethodRolloutSurge: true, v1alpha1.MethodSurge: true, v1alpha1.MethodRelaxedSurge: true, v1alpha1.MethodOwnerRemediation: true,
			},
			Limits:   remediator.Limits{AtOnce: 3, PerWindow: 10, Window: time.Hour, MassFailure: remediator.MassFailure{Percent: 20, Floor: 4, Cooldown: 10 * time.Minute}, Cooldown: 5 * time.Minute},
			Timeouts: remediator.Timeouts{ScaleUp: 5 * time.Minute, Ready: 20 * time.Minute, Removal: 30 * time.Minute},
			Attempts: 3,
		},
	}
}

// uninitialize turns the control plane into a new one without machines.
func (w *world) uninitialize() { w.owner.Uninitialized, w.cluster.Reachable = true, object.False }

// add adds a machine that has joined and is healthy.
func (w *world) add(domain string) *machine {
	m := w.provision(domain)
	m.Created = m.Created.Add(-time.Hour)
	w.join(m)
	return m
}

// provision adds a machine that has not joined yet.
func (w *world) provision(domain string) *machine {
	w.made++
	name := fmt.Sprintf("m%d", w.made)
	m := &machine{
		Machine: remediator.Machine{
			Name: name, UID: types.UID(name + "-uid"), Created: w.now.Truncate(time.Second), FailureDomain: domain, ClonedFrom: w.target,
			Conditions: make(map[string]remediator.Condition),
		},
		Template: w.target,
	}
	w.machines = append(w.machines, m)
	return m
}

// join lets a machine become a node and, with stacked etcd, a voter, and reports whether it did. Etcd accepts no new
// member while one of its voters is disconnected (mayAddMember in etcd's server), and such a machine never joins. A
// majority suffices to promote an existing learner (mayPromoteMember).
func (w *world) join(m *machine) bool {
	if m.NeverJoins || m.Deleting {
		return false
	}
	if w.stacked() {
		voters, dead := w.voters()
		switch {
		case m.Learner && !w.quorum():
			return false
		case !m.Learner && dead > 0 && !(w.byQuorum && voters-dead >= (voters+1)/2+1):
			m.NeverJoins = true
			return false
		case w.learner(m):
			return false // etcd accepts one learner at a time (--max-learners)
		}
		m.Member, m.Learner, m.Etcd, m.Leader = true, false, true, voters == 0
	}
	m.Node, m.Kubelet, m.Pods = "node-"+m.Name, true, true
	if w.owner.Uninitialized {
		w.owner.Uninitialized, w.cluster.Reachable = false, object.True
	}
	return true
}

// maintenance is an annotation with the time at which a machine stops.
const maintenance = "example.com/maintenance"

// stopTime returns when the machine stops, or the zero time for never.
func (m *machine) stopTime() time.Time {
	at, err := time.Parse(time.RFC3339, m.Annotations[maintenance])
	if err != nil {
		return time.Time{}
	}
	return at
}

// hasNotice reports whether the policy requires a replacement because the machine is about to stop.
func (w *world) hasNotice(m *machine) bool {
	at := m.stopTime()
	return !at.IsZero() && slices.ContainsFunc(w.policy.Checks.Notices, func(n remediator.Notice) bool { return !w.now.Before(at.Add(-n.Lead)) })
}

// stacked reports whether the owner's machines run etcd.
func (w *world) stacked() bool {
	return remediator.OwnerKind(w.owner.Kind).IsControlPlane() && !w.owner.ExternalEtcd
}

// learner reports whether etcd has a learner other than the machine.
func (w *world) learner(m *machine) bool {
	return slices.ContainsFunc(w.machines, func(other *machine) bool { return other != m && other.Member && other.Learner }) ||
		slices.ContainsFunc(w.orphans, func(o orphan) bool { return o.Learner })
}

// voters returns the number of etcd voters, and how many of them are dead.
func (w *world) voters() (voters, dead int) {
	for _, o := range w.orphans {
		if !o.Learner {
			voters, dead = voters+1, dead+1
		}
	}
	for _, m := range w.machines {
		if m.Member && !m.Learner {
			voters++
			if !m.Etcd {
				dead++
			}
		}
	}
	return voters, dead
}

func (w *world) quorum() bool {
	voters, dead := w.voters()
	return voters-dead >= voters/2+1 || voters == 0
}

// elect makes the machine with this node the leader, or the first that can be one if node is "".
func (w *world) elect(node string) {
	chosen := false
	for _, m := range w.machines {
		m.Leader = !chosen && m.Member && !m.Learner && m.Etcd && (m.Node == node || node == "")
		chosen = chosen || m.Leader
	}
}

func (w *world) machine(name string) *machine {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return w.machines[i]
}

// isHealthy reports whether a machine is healthy and runs all its components.
func (w *world) isHealthy(m *machine) bool {
	return !m.Deleting && m.Node != "" && m.Kubelet && m.Pods && !m.Pressed && !m.FailsForeignCheck && (!w.stacked() || m.Member && !m.Learner && m.Etcd)
}

// updateConditions updates the conditions and their times to the actual state.
func (w *world) updateConditions() {
	for _, m := range w.machines {
		if !w.staleStatus {
			m.CertificatesStatus = m.Certificates // core/reconcilers/machine, reconcileCertificateExpiry
		}
		if m.Node != "" && m.Kubelet && m.Pressed {
			w.set(m, "NodeReady", object.False, "NodeNotReady")
		} else {
			w.condition(m, "NodeReady", m.Node != "", m.Kubelet, "NodeReadyUnknown")
		}
		if !remediator.OwnerKind(w.owner.Kind).IsControlPlane() {
			continue
		}
		for _, c := range components[:3] {
			if m.Node != "" && m.Kubelet && !m.Pods {
				w.set(m, c, object.False, "PodFailed")
			} else {
				w.condition(m, c, m.Node != "", m.Kubelet, "Unknown")
			}
		}
		if !w.stacked() {
			continue
		}
		if m.Node != "" && m.Kubelet && !m.Etcd && !m.Cut {
			w.set(m, "EtcdPodHealthy", object.False, "PodFailed")
		} else {
			w.condition(m, "EtcdPodHealthy", m.Node != "", m.Kubelet, "Unknown")
		}
		// This condition is the membership as another endpoint sees it. It does not show whether the member runs.
		if m.Node != "" && (!m.Member || m.Learner || m.MemberReportedUnhealthy) {
			w.set(m, "EtcdMemberHealthy", object.False, "NotHealthy")
		} else {
			w.condition(m, "EtcdMemberHealthy", m.Node != "", true, "")
		}
	}
}

func (w *world) condition(m *machine, name string, known, alive bool, reason string) {
	switch {
	case !known:
	case alive:
		w.set(m, name, object.True, name)
	default:
		w.set(m, name, object.Unknown, reason)
	}
}

func (w *world) set(m *machine, name string, status object.ConditionStatus, reason string) {
	if c, ok := m.Conditions[name]; !ok || c.Status != status {
		w.setCondition(m, name, status, reason)
	}
}

// setCondition sets a condition in a copy of the map, which earlier facts and other states of a search share.
func (w *world) setCondition(m *machine, name string, status object.ConditionStatus, reason string) {
	m.Conditions = maps.Clone(m.Conditions)
	m.Conditions[name] = remediator.Condition{Status: status, Reason: reason, Since: w.now}
}

// removeCondition removes a condition.
func (m *machine) removeCondition(name string) {
	if _, ok := m.Conditions[name]; ok {
		m.Conditions = maps.Clone(m.Conditions)
		delete(m.Conditions, name)
	}
}

// observe returns the facts that an Observer would read, including those of etcd if asked.
func (w *world) observe(asked bool) *remediator.Facts {
	w.updateConditions()
	w.owner.RollingOut = w.rollout()
	w.owner.OnDelete = w.onDelete
	f := &remediator.Facts{Owner: w.owner, Cluster: w.cluster, Policy: w.policy, Ledger: w.ledger, Fleet: w.fleet, Move: w.move, EtcdRequests: w.etcdRequests, Maintenance: w.maintenance}
	f.Cluster.FailureDomains = slices.Clone(w.cluster.FailureDomains)
	w.topology(f)
	f.Policy.Methods, f.Policy.Escalation = maps.Clone(w.policy.Methods), slices.Clone(w.policy.Escalation)
	f.Policy.Paused, f.Ledger.Started = slices.Clone(w.policy.Paused), slices.Clone(w.ledger.Started)
	if w.policy.Unreadable != "" {
		f.Policy = remediator.Policy{Name: w.policy.Name, UID: w.policy.UID, Unreadable: w.policy.Unreadable}
	}
	if w.policy.Name == "" {
		f.Policy.Escalation = nil
	}
	for _, m := range w.machines {
		if m.Unobserved {
			continue
		}
		seen := m.Machine
		seen.Hooks, seen.StepObjects = slices.Clone(m.Hooks), slices.Clone(m.StepObjects)
		if m.Request != nil {
			request := *m.Request
			seen.Request = &request
		}
		if w.healthCheck {
			seen.HealthChecksPass = w.healthChecksPass()
		}
		if _, made := w.recorded[m.UID]; !made && w.isHealthy(m) && m.UnhealthyAnnotation == "" && m.DeleteAnnotation == "" && m.Request == nil && !m.Remediate {
			seen.ClonedFrom = "" // reading it costs a request, which is not made for a healthy machine
		}
		if seen.Set = m.Template; w.owner.Kind == string(remediator.Deployment) && seen.Set != w.target && !slices.Contains(f.Owner.Sets, seen.Set) {
			f.Owner.Sets = append(f.Owner.Sets, seen.Set)
		}
		f.Machines = append(f.Machines, seen)
	}
	if w.owner.Kind == string(remediator.Deployment) {
		slices.Sort(f.Owner.Sets)
		if w.moving {
			f.Owner.Moving = slices.Clone(f.Owner.Sets)
		}
		f.Owner.Sets = append(f.Owner.Sets, w.target)
	} else {
		for i := range f.Machines {
			f.Machines[i].Set = ""
		}
	}
	slices.SortFunc(f.Machines, func(a, b remediator.Machine) int { return strings.Compare(a.Name, b.Name) })
	if !asked {
		f.Cluster.Reachable = object.Absent
		return f
	}
	if w.stacked() {
		f.Etcd = w.etcdAnswers()
	}
	f.EtcdRequests.Before = w.etcdRequests.Last
	switch {
	case !remediator.Blind(f):
		w.blindSince = time.Time{}
	case w.blindSince.IsZero():
		w.blindSince = w.now
	default:
		f.Cluster.BlindFor = w.now.Sub(w.blindSince)
	}
	return f
}

// topology sets the topology of the facts. The entry of a deleted owner can be found only by the owner's name.
func (w *world) topology(f *remediator.Facts) {
	if !w.cluster.Topology {
		return
	}
	if f.Owner.Kind == string(remediator.Deployment) {
		f.Cluster.Entry = "workers"
	}
	f.Cluster.Entries = map[string]int32{f.Cluster.Entry: w.cluster.TopologyReplicas}
	if !f.Owner.Found {
		f.Cluster.Topology, f.Cluster.TopologyReplicas, f.Cluster.Entry = false, 0, ""
	}
}

// rollout returns why the owner replaces its machines, or "". A MachineSet, and a MachineDeployment with the strategy
// OnDelete, do not replace outdated machines.
func (w *world) rollout() string {
	for _, m := range w.machines {
		switch {
		case m.Updating:
			return m.Name + " is updated in place"
		case m.Template != w.target && !w.onDelete && w.owner.Kind != string(remediator.Set):
			return "machines are rolled out to " + w.target
		}
	}
	return ""
}

func (w *world) etcdAnswers() *remediator.Etcd {
	etcd := &remediator.Etcd{Err: w.etcdErr, Alarms: slices.Clone(w.alarms), AddsByQuorum: w.byQuorum}
	if etcd.Err != "" {
		return etcd
	}
	for _, m := range w.machines {
		if !m.Member {
			continue
		}
		member := remediator.Member{Node: "node-" + m.Name, Learner: m.Learner, Leader: m.Leader && m.Etcd, Answers: object.True}
		if m.Etcd && !m.EtcdUnreachable {
			member.Size, member.InUse, member.Quota = m.Database.Size, m.Database.InUse, m.Database.Quota
		}
		switch {
		case m.Learner && m.Node == "" && !m.Etcd:
			member.Node, member.Answers, member.Reason = "member "+m.Name, object.False, "it was added, and has not started yet"
		case m.EtcdUnreachable, w.onlyKubelets && !m.Kubelet:
			member.Answers, member.Reason = object.Unknown, "the port cannot be forwarded"
		case !m.Etcd:
			member.Answers, member.Reason = object.False, "connection refused"
		}
		etcd.Members = append(etcd.Members, member)
	}
	for i, o := range w.orphans {
		member := remediator.Member{Node: o.Name, Namesake: o.Namesake, Learner: o.Learner, Answers: object.False, Reason: "connection refused"}
		if o.Name == "" {
			member.Node, member.Reason = fmt.Sprintf("member %d", i), "it was added, and has not started yet"
		}
		etcd.Members = append(etcd.Members, member)
	}
	slices.SortFunc(etcd.Members, func(a, b remediator.Member) int { return strings.Compare(a.Node, b.Node) })
	return etcd
}
