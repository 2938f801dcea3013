package remediator_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// guard checks that a remediator and its simulated cluster never violate an invariant. It does not use the remediator's
// logic: it checks a start against the facts that were read, and a deletion against the actual state.
type guard struct {
	w     *world
	state remediator.State

	desired         int32 // replicas that users want
	excess          int   // machines that the owner must delete because users scaled down
	unmarked        int   // delete annotations that users removed while there were too many machines: the owner deletes other machines instead
	reverted        bool  // a user reset replicas in the middle of a surge, so the owner deletes machines
	foreignDeletion bool  // a foreign MachineHealthCheck had a machine deleted: the control plane's annotation for that is not scute's
	raced           bool  // users changed replicas in the middle of a surge by replicas

	faults        int // so far
	faultsAtStart int // faults when the last remediation began
	// faultsAtTakeover is the number of faults when another log took the owner over. What the
	// earlier log left behind must not cost quorum.
	faultsAtTakeover int
	// faultsAtObservation is the number of faults when the last complete turn ended. Machines that
	// are still handed over then must not cost quorum.
	faultsAtObservation int
	last                *remediator.Active
	spare               int // machines too many when the last remediation began
}

// reset clears the record of what users did when it has no more effect.
func (g *guard) reset() {
	staying := len(g.w.machines) - deleting(g.w.machines)
	if g.w.tooMany(g.desired) == 0 {
		g.excess = 0
	}
	if g.state.Active == nil && staying == len(g.w.machines) && staying == int(g.desired) && g.w.owner.Replicas == g.desired {
		g.reverted = false
	}
}

// scaleBy changes the desired replicas. In the middle of a surge by replicas, the change may be
// indistinguishable from the surge's own.
func (g *guard) scaleBy(by int32) {
	g.desired += by
	if by < 0 || g.desired < *g.w.replicas() { // a surge's new machine is one too many, and any machine may be deleted for it
		g.excess = g.w.tooMany(g.desired)
	}
	for _, a := range g.state.InProgress() {
		g.raced = g.raced || a.Request.Method == remediator.Surge
	}
	*g.w.replicas(), g.w.owner.Observed = g.desired, false
}

// checkStarts returns which rule the events break that are about to be stored, or "".
func (g *guard) checkStarts(f *remediator.Facts, events []remediator.Event) string {
	for _, e := range events {
		wrong := ""
		if subject := reflect.ValueOf(e).FieldByName("Machine"); remediator.IsStart(e) {
			wrong = g.refusal(f, subject.Interface().(remediator.Subject))
		}
		if wrong != "" {
			return fmt.Sprintf("%T: %s", e, wrong)
		}
		switch e := e.(type) {
		case remediator.SurgeRequested:
			wrong = g.checkSurge(f, e)
		case remediator.HandedOver:
			wrong = g.checkStart(f, e.Machine, 0, 1)
			wanted := f.Owner.Replicas
			if f.Cluster.Topology { // the owner may not have been updated yet
				wanted = min(wanted, f.Cluster.TopologyReplicas)
			}
			g.spare = len(f.Machines) - int(wanted)
		case remediator.EscalationStarted:
			if g.state.Maintenance.Active.Node != "" {
				wrong = "a step while a member of etcd is defragmented"
			}
		case remediator.DefragmentationStarted:
			g.faultsAtStart, wrong = g.faults, g.checkDefragmentation(f, e)
		case remediator.NoSpaceDisarmed:
			if slices.ContainsFunc(f.Etcd.Members, func(m remediator.Member) bool { return m.Size*4 >= m.Quota*3 }) {
				wrong = "there is no room"
			}
		}
		if wrong != "" {
			return fmt.Sprintf("%T: %s", e, wrong)
		}
	}
	return ""
}

// checkDefragmentation checks that a member is defragmented only while everything is healthy,
// unless a database is full, and that followers come before the leader.
func (g *guard) checkDefragmentation(f *remediator.Facts, e remediator.DefragmentationStarted) string {
	full := slices.ContainsFunc(f.Etcd.Alarms, func(alarm string) bool { return strings.HasPrefix(alarm, "NOSPACE") })
	switch {
	case g.state.Active != nil || g.state.Maintenance.Active.Node != "":
		return "something else is in progress"
	case f.Owner.Paused || f.Cluster.Paused || f.Move != "" || len(f.Policy.Paused) > 0 || f.Policy.Unreadable != "" || f.Policy.Name == "":
		return "somebody else has the owner in hand"
	case f.Owner.RollingOut != "" || int(f.Owner.Replicas) != len(f.Machines) || slices.ContainsFunc(f.Machines, func(m remediator.Machine) bool { return m.Deleting || m.Node == "" }):
		return "machines come or go"
	}
	for _, m := range f.Etcd.Members {
		_, done := g.state.Maintenance.Done[m.Node]
		switch {
		case m.Answers != object.True || m.Learner:
			return m.Node + " does not answer, or does not vote"
		case e.Leader && !m.Leader && !done && m.Size >= 100<<20 && (m.Size-m.InUse)*2 > m.Size:
			return "the leader comes before " + m.Node
		}
	}
	for _, u := range g.state.Unhealthy {
		if u.Mark.State != "" && !full {
			return u.Name + " is unhealthy"
		}
	}
	return ""
}

func (g *guard) checkSurge(f *remediator.Facts, e remediator.SurgeRequested) string {
	switch {
	case e.Relaxed && len(f.Machines) < 3 && g.w.stacked():
		return fmt.Sprintf("a relaxed surge of %d machines", len(f.Machines))
	case g.w.stacked() && slices.ContainsFunc(f.Etcd.Members, func(m remediator.Member) bool { return !m.Learner && m.Answers == object.False }):
		return "a surge while etcd takes no new member"
	case g.w.owner.MaxSurge == 0 && e.Method == remediator.RolloutSurge:
		return "a rollout surge where maxSurge is 0"
	}
	return g.checkStart(f, e.Machine, 1, 0)
}

func (g *guard) checkStart(f *remediator.Facts, victim remediator.Subject, adds, removes int) string {
	g.faultsAtStart, g.spare = g.faults, 0
	if g.state.Maintenance.Active.Node != "" {
		return "begun while a member of etcd is defragmented"
	}
	unhealthy := g.state.Unhealthy[victim.UID]
	if unhealthy == nil || unhealthy.Mark.State == "" || unhealthy.Mark.State != remediator.Unhealthy {
		return victim.Name + " is not marked unhealthy"
	}
	m := g.w.machine(victim.Name)
	if f.Owner.Paused || f.Cluster.Paused || f.Move != "" || len(f.Policy.Paused) > 0 || f.Policy.Unreadable != "" {
		return "begun while somebody else has the owner in hand"
	}
	if removes == 0 && f.Owner.RollingOut != "" && f.Owner.Kind == string(remediator.ControlPlane) {
		return "a surge in the middle of a rollout"
	}
	switch {
	case m == nil:
		return ""
	case m.Skip || m.Paused:
		return victim.Name + " is skipped"
	case g.w.isHealthy(m) && !m.Remediate && !g.w.stillUnhealthy(m) && !g.w.hasNotice(m):
		return victim.Name + " is healthy, and nothing says otherwise"
	case g.w.stacked():
		return g.checkQuorum(f, m, adds, removes)
	}
	return ""
}

// checkQuorum checks that a majority of the resulting voters answers, as far as the facts show.
func (g *guard) checkQuorum(f *remediator.Facts, victim *machine, adds, removes int) string {
	if f.Owner.Uninitialized && removes == 1 && len(f.Machines) == 1 && f.Machines[0].Node == "" {
		return "" // nothing runs yet
	}
	if f.Etcd == nil || f.Etcd.Err != "" || f.Cluster.Reachable != object.True {
		return "begun blindly"
	}
	voters, answer, own := 0, 0, 0
	for _, m := range f.Etcd.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.Answers == object.True {
			answer++
		}
		if m.Node == victim.Node {
			own = 1
			if m.Answers == object.True {
				answer -= removes
			}
		}
	}
	voters -= removes * own
	if voters+adds <= 2 && adds == 1 && answer == voters {
		return "" // there is no other way from one voter to two
	}
	if left := voters + adds; answer < left/2+1 {
		return fmt.Sprintf("without %s, %d of %d voters would answer", victim.Name, answer, left)
	}
	return ""
}

// observed records that all actions for the facts were performed.
func (g *guard) observed(f *remediator.Facts) {
	if f.Move == "" && !f.Cluster.Paused && f.Cluster.Reachable == object.True {
		g.faultsAtObservation = g.faults
	}
}

// act performs one reconcile of the owner and checks what it deletes. It returns what the owner did, and which rule
// that breaks.
func (g *guard) act() (did, wrong string) {
	quorum, wanted := g.w.quorum(), g.excess > 0 || g.w.rollout() != ""
	did, m := g.w.act()
	if m == nil {
		return did, ""
	}
	if wrong = cmp.Or(g.checkDeletion(m), g.checkRemediatedTwice(m)); wrong == "" && quorum && g.w.stacked() && m.Member && !m.Learner && !g.reverted &&
		(g.faults == g.faultsAtStart || m.OtherHealthCheck == "" && (g.faults == g.faultsAtTakeover || g.faults == g.faultsAtObservation && m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False)) {
		voters, dead := g.w.voters()
		answer := voters - dead
		if m.Etcd {
			answer--
		}
		theirs := wanted && m.DeleteAnnotation != remediator.DeleteValue && slices.ContainsFunc(g.w.machines, func(m *machine) bool { return m.Cut })
		if voters > 1 && answer < (voters-1)/2+1 && !theirs { // users asked for it, of an owner that regards a disconnected member as healthy
			wrong = "quorum is lost with " + m.Name
		}
	}
	return did, wrong
}

// checkRemediatedTwice checks that the owner does not remediate a new machine, handed over as one
// too many, after it has already deleted another machine.
func (g *guard) checkRemediatedTwice(m *machine) string {
	a := g.state.Active
	handed := m.Conditions[clusterv1.MachineHealthCheckSucceededCondition].Reason == remediator.HandOverReason && m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False
	if a == nil || !handed || m.UID == a.Victim.UID || g.faults != g.faultsAtObservation || g.raced || g.reverted || g.excess > 0 {
		return ""
	}
	if staying := len(g.w.machines) - deleting(g.w.machines); staying < int(g.desired) {
		return fmt.Sprintf("%s was handed over as one too many, and without it there are %d of %d machines", m.Name, staying, g.desired)
	}
	return ""
}

// checkDeletion checks a machine that the owner has just begun to delete.
func (g *guard) checkDeletion(m *machine) string {
	older, a := g.isOlder(m), g.state.Active
	m.Deleting = false
	alive := g.w.isHealthy(m)
	m.Deleting = true
	switch {
	case !alive, g.reverted, m.DeleteAnnotation == foreignDeleteValue, m.OtherHealthCheck != "", m.Template != g.w.target && g.w.rollout() != "":
		return ""
	case !older && (a != nil || m.DeleteAnnotation == remediator.DeleteValue):
		return ""
	case a != nil && a.Victim.UID == m.UID && !(a.Step == remediator.Sparing && m.DeleteAnnotation == "" && m.Certificates == a.Request.Original && m.Template == m.ClonedFrom):
		return ""
	case g.excess > 0:
		g.excess--
		return ""
	case g.unmarked > 0:
		g.unmarked--
		return ""
	case g.surplus(m):
		return ""
	case g.w.onDelete && a != nil && a.Step == remediator.Settling && g.createdSince(a, m.Template):
		return ""
	case a == nil:
		return m.Name + " was healthy, and nothing is in progress"
	case a.Victim.UID != m.UID:
		return m.Name + " was well, and is not the machine to be replaced"
	}
	return m.Name + " had been spared"
}

// surplus reports whether the machine is one too many from an earlier remediation and has its delete annotation, while
// it or another machine is handed over. A hand-over itself sets no annotation. If users scaled up in the middle of a
// surge and its end reverted that, the owner keeps no more machines than its replicas.
func (g *guard) surplus(m *machine) bool {
	wanted := g.desired
	if g.raced {
		wanted = min(wanted, *g.w.replicas())
	}
	return g.last != nil && g.last.Request.Method == remediator.OwnerRemediation && m.DeleteAnnotation == remediator.DeleteValue &&
		len(g.w.machines)-deleting(g.w.machines) >= int(wanted)
}

// createdSince reports whether the owner replaced a machine from a later MachineSet than the one
// with this template, after a user deleted the unhealthy machine while scute could not write. A
// MachineDeployment with OnDelete then deletes one of its oldest machines.
func (g *guard) createdSince(a *remediator.Active, template string) bool {
	return slices.ContainsFunc(a.Extras, func(extra remediator.Subject) bool {
		m := g.w.machine(extra.Name)
		return m != nil && m.Template > template
	})
}

func boolCount(so bool) int {
	if so {
		return 1
	}
	return 0
}

// isOlder reports whether the machine existed before the current remediations, or before the last
// one if there are none.
func (g *guard) isOlder(m *machine) bool {
	of := g.state.InProgress()
	if len(of) == 0 && g.last != nil {
		of = append(of, g.last)
	}
	for _, a := range of {
		if !slices.ContainsFunc(a.Request.Baseline, func(s remediator.Subject) bool { return s.UID == m.UID }) {
			return false
		}
	}
	return len(of) > 0
}

// checkMarks checks that at most one machine that existed before has a delete annotation, or as
// many as were too many when the last machine was handed over: new machines of an earlier
// remediation belong to the baseline of this one. A hand-over sets no annotation, and excess
// annotations are removed when its machine is gone.
func (g *guard) checkMarks() string {
	var newMachines []types.UID
	marked := 0
	for _, m := range g.w.machines {
		older := g.last == nil || g.isOlder(m)
		if !older {
			newMachines = append(newMachines, m.UID)
		}
		if older && !m.Deleting && m.DeleteAnnotation == remediator.DeleteValue {
			marked++
		}
	}
	if marked > max(1, g.spare) {
		return fmt.Sprintf("%d machines are marked to be deleted, of %d too many, in addition to the new machines %v", marked, g.spare, newMachines)
	}
	return ""
}
