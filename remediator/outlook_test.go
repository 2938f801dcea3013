package remediator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// TestAhead checks that the outlook of each step names the next action, who performs it, and the deadline.
func TestAhead(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	victim, replacement := Subject{Name: "cp-1", UID: "1"}, Subject{Name: "cp-4", UID: "4"}
	marked := MachineMarked{Machine: victim, State: Unhealthy, Since: at}
	failing := marked
	failing.State = Failing
	decided := Decided{Machine: victim, Decision: Decision{Verdict: RolloutSurge, Rule: "d", Reason: "its etcd answers"}}
	requested := SurgeRequested{Machine: victim, Method: RolloutSurge, Attempt: 1}
	waits := func(rule string) Decided {
		return Decided{Machine: victim, Decision: Decision{Verdict: Wait, Rule: rule, Reason: "something else comes first"}}
	}
	policy := Policy{
		Timeouts: Timeouts{ScaleUp: 5 * time.Minute, Ready: 20 * time.Minute, Removal: time.Hour}, Hold: 10 * time.Minute, Limits: Limits{Cooldown: time.Minute},
		Escalation: []EscalationStep{{Name: "reboot", Timeout: 3 * time.Minute}},
	}
	well := make(map[string]Condition)
	for _, name := range conditionTypes(components) {
		well[name] = Condition{Status: object.True}
	}
	machines := []Machine{{Name: victim.Name, UID: victim.UID, Node: "n-1", ClonedFrom: "template", Conditions: well}, {Name: replacement.Name, UID: replacement.UID, Node: "n-4", Conditions: well}}
	for name, c := range map[string]struct {
		events []Event
		want   Outlook
	}{
		"a check fails": {[]Event{failing}, Outlook{Since: at, Next: "it counts as unhealthy when the timeout of the check has passed"}},
		"asked":         {[]Event{marked, decided, requested}, Outlook{Rule: "d", Since: at, Next: "cp was asked for one more machine", Until: at.Add(5 * time.Minute), Then: thenCancelled}},
		"handed over":   {[]Event{marked, HandedOver{Machine: victim}}, Outlook{Since: at, Next: "cp was asked to remediate: it deletes the machine, and creates another", Until: at.Add(5 * time.Minute), Then: thenCancelled}},
		"replacing":     {[]Event{marked, decided, requested, ReplacementObserved{Replacement: replacement}}, Outlook{Rule: "d", Since: at, Next: "replacement cp-4 exists, and is not ready; cp deletes the machine when it is", Until: at.Add(20 * time.Minute), Then: thenCancelled}},
		"removing":      {[]Event{marked, decided, requested, ReplacementReady{Replacement: replacement}}, Outlook{Rule: "d", Since: at, Next: "replacement cp-4 is ready; cp must delete the machine", Until: at.Add(time.Hour), Then: thenCancelled}},
		"settling":      {[]Event{marked, decided, requested, ReplacementObserved{Replacement: replacement}, VictimGone{}}, Outlook{Rule: "d", Since: at, Next: "the machine is gone; waiting until its replacement is ready", Until: at.Add(25 * time.Minute), Then: "it ends as Cancelled"}},
		"deleting":      {[]Event{marked, decided, requested, VictimDeleting{}}, Outlook{Rule: "d", Since: at, Next: "cp is deleting the machine", Until: at.Add(time.Hour), Then: "it is frozen until the machine is gone; find out what blocks the deletion"}},
		"cancelling": {
			[]Event{marked, decided, SurgeRequested{Machine: victim, Method: RolloutSurge, Attempt: 1, Trigger: TriggerCertificates, TriggerValue: "now"}, CancelStarted{Cause: TimedOut}},
			Outlook{Rule: "d", Since: at, Next: "cancelling the replacement: ; cp must observe that the request is undone; if this lasts, check that its controller runs"},
		},
		"sparing": {
			[]Event{marked, decided, requested, ReplacementObserved{Replacement: replacement}, CancelStarted{Cause: TimedOut}, VictimSpared{}},
			Outlook{Rule: "d", Since: at, Next: "cancelling the replacement: ; cp must delete the new machines (cp-4) until none is surplus; if it is not deleted, find out why, and delete the new machine with the annotation cluster.x-k8s.io/delete-machine by hand", Until: at.Add(time.Hour), Then: "it ends as Cancelled, and scute decides again about all machines"},
		},
		"frozen":         {[]Event{marked, decided, requested, Frozen{Rule: "paused", Reason: "cluster prod is paused"}}, Outlook{Rule: "paused", Since: at, Next: "it continues when this has passed: cluster prod is paused", Frozen: true}},
		"held":           {[]Event{marked, HoldSet{Machine: victim, Until: at.Add(time.Hour)}, waits("hold")}, Outlook{Rule: "hold", Since: at, Next: "something else comes first", Until: at.Add(time.Hour), Then: "scute decides again", Held: true}},
		"policy holds":   {[]Event{marked, waits("policy-hold")}, Outlook{Rule: "policy-hold", Since: at, Next: "something else comes first", Until: at.Add(10 * time.Minute), Then: "scute decides again"}},
		"a step is made": {[]Event{marked, EscalationStarted{Machine: victim, Step: "reboot"}, Decided{Machine: victim, Decision: Decision{Verdict: Escalate, Rule: "escalation"}}}, Outlook{Rule: "escalation", Since: at, Next: "escalation step reboot makes it healthy", Until: at.Add(3 * time.Minute), Then: "the next step, or a replacement"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			for _, e := range append([]Event{Registered{Owner: Owner{Kind: string(ControlPlane), Name: "cp"}}}, c.events...) {
				s.Apply(e, at)
			}
			f := &Facts{Owner: OwnerFacts{Owner: s.Owner, Found: true, Observed: true, Replicas: 3}, Policy: policy, Machines: machines}
			f.Cluster = ClusterFacts{Found: true, Reachable: object.True, BlindFor: time.Hour}
			if slices.ContainsFunc(c.events, func(e Event) bool { return e == Event(VictimDeleting{}) }) {
				f.Machines = slices.Clone(machines)
				f.Machines[0].Deleting, f.Machines[0].DeletingSince = true, at
			}
			if s.Active != nil && s.Active.Step == cancelling {
				f.Machines = slices.Clone(machines)
				f.Machines[0].Certificates = s.Active.Request.TriggerValue
			}
			if s.Active != nil && s.Active.Step == settling {
				f.Machines = machines[1:]
			}
			got, ok := OutlookOf(s, victim.UID, f, at)
			if diff := cmp.Diff(c.want, got); diff != "" || !ok {
				t.Error(ok, diff)
			}
		})
	}
	// A new machine that was handed over is kept because another machine was deleted by hand. The attempt must not end
	// before the hand-over is reverted.
	spared := &State{}
	for _, e := range []Event{Registered{Owner: Owner{Kind: string(ControlPlane), Name: "cp"}}, marked, decided, requested, ReplacementObserved{Replacement: replacement}, CancelStarted{Cause: TimedOut}, VictimSpared{}} {
		spared.Apply(e, at)
	}
	handed := slices.Clone(machines)
	handed[1].Conditions = map[string]Condition{
		clusterv1.MachineHealthCheckSucceededCondition: {Status: object.False, Reason: HandOverReason}, clusterv1.MachineOwnerRemediatedCondition: {Status: object.False},
	}
	o, _ := OutlookOf(spared, victim.UID, &Facts{
		Owner: OwnerFacts{Owner: spared.Owner, Found: true, Observed: true, Replicas: 2}, Policy: policy, Machines: handed,
		Cluster: ClusterFacts{Found: true, Reachable: object.True, BlindFor: time.Hour},
	}, at)
	if !o.Until.IsZero() {
		t.Errorf("Until = %s although the hand-over must be reverted, want no time", o.Until)
	}
	// A machine that never joined, and its learner, keep the owner from creating the replacement.
	s := &State{}
	stranded := Subject{Name: "cp-5", UID: "5"}
	for _, e := range []Event{Registered{Owner: Owner{Kind: string(ControlPlane), Name: "cp"}}, MachineMarked{Machine: stranded, State: Unhealthy}, HandedOver{Machine: victim}, VictimGone{}} {
		s.Apply(e, at)
	}
	f := &Facts{
		Owner: OwnerFacts{Owner: s.Owner, Found: true, Observed: true, Replicas: 3, Relaxed: `{"machine":"cp-1"}`}, Policy: policy,
		Machines: []Machine{{Name: stranded.Name, UID: stranded.UID}}, Etcd: &Etcd{Members: []Member{{Node: "n-5", Learner: true}}},
		Cluster: ClusterFacts{Found: true, Reachable: object.True, BlindFor: time.Hour},
	}
	if o, _ := OutlookOf(s, victim.UID, f, at); !o.Until.Equal(at.Add(policy.Timeouts.ScaleUp)) {
		t.Errorf("Until = %s, want the scale-up timeout", o.Until)
	}
	if _, ok := OutlookOf(&State{}, victim.UID, &Facts{Policy: policy}, at); ok {
		t.Error("Ahead returns an outlook for an unknown machine")
	}
}

// TestAheadOfWindows checks that a machine that waits for the limit of a window waits until enough of the counted
// remediations have left the window, and that remediations of other owners count when the log is available.
func TestAheadOfWindows(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	victim := Subject{Name: "cp-1", UID: "1"}
	begun := func(namespace, policy string, minutes ...int) *State {
		s := &State{Owner: Owner{Kind: string(ControlPlane), Namespace: namespace, Name: "cp", UID: "9"}}
		s.History = []pastRemediation{{Evidence: Evidence{PolicyName: policy}}}
		for _, m := range minutes {
			s.Starts = append(s.Starts, at.Add(-time.Duration(m)*time.Minute))
		}
		return s
	}
	others := []*State{begun("fleet", "a", 70, 50, 40), begun("fleet", "b", 45, 8), begun("other", "a", 30, 7)}
	for name, c := range map[string]struct {
		rule  string
		own   []int
		limit int
		want  int // minutes from now; 0 for no time
	}{
		"of the policy":               {ruleWindow, []int{20}, 3, 10},
		"of the policy, full":         {ruleWindow, []int{20, 5}, 2, 40},
		"of the policy, open":         {ruleWindow, nil, 3, 0},
		"of the policy, none allowed": {ruleWindow, nil, 0, 0},
		"of the fleet":                {ruleFleetWindow, []int{20}, 7, 10},
		"of the fleet, lowered":       {ruleFleetWindow, []int{20}, 2, 53 - 1},
		"of the fleet, open":          {ruleFleetWindow, nil, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun("fleet", "a", c.own...)
			s.Apply(MachineMarked{Machine: victim, State: Unhealthy, Since: at}, at)
			s.Apply(Decided{Machine: victim, Decision: Decision{Verdict: Wait, Rule: c.rule}}, at)
			f := &Facts{Owner: OwnerFacts{Owner: s.Owner, Found: true}, Policy: Policy{Name: "a", Limits: Limits{PerWindow: c.limit, Window: time.Hour}}}
			f.Fleet.Limits = FleetLimits{PerWindow: c.limit, Window: time.Hour}
			f.CountStarted(s, append(others, s), at)
			got, _ := OutlookOf(s, victim.UID, f, at)
			want := dueIf(c.want > 0, at.Add(time.Duration(c.want)*time.Minute))
			if !got.Until.Equal(want) || (got.Then == thenDecided) != (c.want > 0) {
				t.Errorf("Until = %s, want %s; Then = %q", got.Until, want, got.Then)
			}
		})
	}
}

// TestAheadOfCooldowns checks that the outlook after a mass failure names the end of the cooldown, if the time of the
// mass failure is known.
func TestAheadOfCooldowns(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	victim := Subject{Name: "cp-1", UID: "1"}
	for name, c := range map[string]struct {
		rule   string
		passed map[string]time.Time
		want   time.Time
	}{
		"of the fleet":           {ruleMassFailureCooldown, map[string]time.Time{wholeFleet: at}, at.Add(10 * time.Minute)},
		"of a failure domain":    {ruleDomainCooldown, map[string]time.Time{wholeFleet: at.Add(-time.Hour), "a": at}, at.Add(20 * time.Minute)},
		"that nobody knows when": {ruleMassFailureCooldown, nil, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			s.Apply(MachineMarked{Machine: victim, State: Unhealthy, Since: at}, at)
			s.Apply(Decided{Machine: victim, Decision: Decision{Verdict: Wait, Rule: c.rule, Domain: "a"}}, at)
			f := &Facts{Owner: OwnerFacts{Found: true}}
			f.Fleet.MassFailuresEnded = c.passed
			f.Fleet.Limits = FleetLimits{Mass: MassFailure{Cooldown: 10 * time.Minute}, DomainMass: MassFailure{Cooldown: 20 * time.Minute}}
			if got, _ := OutlookOf(s, victim.UID, f, at); !got.Until.Equal(c.want) {
				t.Errorf("Until = %s, want %s", got.Until, c.want)
			}
		})
	}
}

// TestAheadOfASurgeThatWorsens checks that the outlook works without asking etcd: according to the evidence of the
// decision, a surge is cancelled after a minute if the owner can no longer create its machine.
func TestAheadOfASurgeThatWorsens(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	victim := Subject{Name: "cp-1", UID: "1"}
	f := &Facts{
		Owner:   OwnerFacts{Owner: Owner{Kind: string(ControlPlane), Name: "cp"}, Found: true, Observed: true, Replicas: 3, MaxSurge: 1},
		Policy:  Policy{Name: "a", Timeouts: Timeouts{ScaleUp: 5 * time.Minute}},
		Cluster: ClusterFacts{Found: true, Reachable: object.True, BlindFor: time.Hour},
		Etcd:    &Etcd{},
	}
	for _, n := range []string{"1", "2", "3"} {
		m := Machine{Name: "cp-" + n, UID: types.UID(n), Node: "n-" + n, Conditions: make(map[string]Condition)}
		for _, name := range append(conditionTypes(components), clusterv1.MachineNodeReadyCondition) {
			m.Conditions[name] = Condition{Status: object.True}
		}
		f.Machines = append(f.Machines, m)
	}
	f.Machines[0].Conditions[clusterv1.MachineNodeReadyCondition] = Condition{Status: object.Unknown, Since: at.Add(-10 * time.Second)}
	for name, c := range map[string]struct {
		voters int
		silent []string
		want   time.Time
	}{
		"all answered":             {3, nil, at.Add(50 * time.Second)},
		"it did not answer":        {3, []string{"n-1"}, at.Add(50 * time.Second)},
		"another one did not":      {3, []string{"n-2"}, at.Add(5 * time.Minute)}, // quorum would be lost without it
		"a member without machine": {4, nil, at.Add(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			for _, e := range []Event{
				Registered{Owner: f.Owner.Owner},
				MachineMarked{Machine: victim, State: Unhealthy, Since: at},
				Decided{Machine: victim, Decision: Decision{Verdict: RolloutSurge, Rule: "d"}, Evidence: Evidence{Voters: c.voters, Silent: c.silent}},
				SurgeRequested{Machine: victim, Method: RolloutSurge, Attempt: 1, Baseline: f.baseline()},
			} {
				s.Apply(e, at)
			}
			if o, _ := OutlookOf(s, victim.UID, f, at); !o.Until.Equal(c.want) || o.Then != thenCancelled {
				t.Errorf("Until = %s, want %s; Then = %q", o.Until, c.want, o.Then)
			}
		})
	}
}

// TestBecauseOfTheAttemptThatIsMeant checks that a machine that waits after an attempt at another machine of its owner
// does not report why its own earlier attempt was cancelled.
func TestBecauseOfTheAttemptThatIsMeant(t *testing.T) {
	at := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	p := Policy{Attempts: 3, Limits: Limits{Cooldown: 10 * time.Minute}}
	u := &UnhealthyMachine{Subject: Subject{Name: "cp-1", UID: "1"}, Attempts: 1, LastAttempt: at}
	s := &State{History: []pastRemediation{
		{Victim: u.Subject, Outcome: EndCancelled, Cause: TimedOut, Note: "cp-4 was not ready", EndedAt: at},
		{Victim: Subject{Name: "cp-2", UID: "2"}, Outcome: EndCancelled, Cause: TimedOut, Note: "cp did not act", EndedAt: at.Add(time.Hour)},
	}}
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{at.Add(time.Minute), "the last attempt was at 2026-07-30T12:00:00Z; the next may start 10m later; the last one was cancelled: cp-4 was not ready"},
		{at.Add(61 * time.Minute), "the last attempt for cp was cancelled at 2026-07-30T13:00:00Z; the next may start 10m later"},
	} {
		u.Decision = *s.checkAttempts(u, &Machine{}, &Facts{Owner: OwnerFacts{Owner: Owner{Name: "cp"}}, Policy: p}, c.now)
		if got := s.decisionReason(u); got != c.want {
			t.Errorf("at %s: got %s", c.now, got)
		}
	}
}

// conditionTypes returns the condition types of components.
func conditionTypes(of []component) []string {
	list := make([]string, 0, len(of))
	for _, c := range of {
		list = append(list, c.condition)
	}
	return list
}
