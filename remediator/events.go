package remediator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Event is one fact about an owner's machines.
type Event interface{ event() }

// The facts. A remediation runs from SurgeRequested or HandedOver to Succeeded, Cancelled or Failed.
type (
	// Registered pins whom the aggregate is about. It is the first event.
	Registered struct {
		Owner Owner `json:"owner"`
	}
	// Claimed fences off every earlier holder.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// MachineMarked: the machine is unhealthy, or about to be; State says which. If the machine was marked already, the
	// state changed.
	MachineMarked struct {
		Machine Subject   `json:"machine"`
		State   MarkState `json:"state"`
		Reason  string    `json:"reason"`
		Source  Source    `json:"source"`
		Since   time.Time `json:"since"`
		// FailureDomain that the machine is in, "" without and in older logs.
		FailureDomain string `json:"failureDomain,omitempty"`
		// Seen are the checks of the Node's own conditions that fail, and since when scute has seen that.
		Seen map[string]time.Time `json:"seen,omitempty"`
		// Failing: the source is a notice, and a check of the machine fails too.
		Failing bool `json:"failing,omitempty"`
	}
	// MachineMarkCleared: it is healthy again, or gone, or no policy selects it any longer.
	MachineMarkCleared struct {
		Machine Subject `json:"machine"`
		// Cause is Recovered ("" in older logs), Deselected or MachineGone.
		Cause Cause  `json:"cause,omitempty"`
		Why   string `json:"why"`
	}
	// Decided about the machine that comes first, with what was seen. It is said again when the decision changes.
	Decided struct {
		Machine  Subject  `json:"machine"`
		Decision Decision `json:"decision"`
		Evidence Evidence `json:"seen"`
	}
	// HoldSet: an operator, or the policy, keeps the machine. Until zero: until it is taken off.
	HoldSet struct {
		Machine Subject   `json:"machine"`
		Until   time.Time `json:"until,omitzero"`
		Reason  string    `json:"reason,omitempty"`
		// Request that says so; "" in older logs. Only of it can the hold be taken off.
		Request types.UID `json:"request,omitempty"`
	}
	// HoldReleased ends a hold, or an abort: a new decision is made for the machine, and the count of its attempts, and of
	// the replacements before it that failed, starts again.
	HoldReleased struct {
		Machine Subject `json:"machine"`
	}
	// AbortRequested by an operator: the replacement in progress is cancelled, no other one begins for the machine.
	AbortRequested struct {
		Machine Subject `json:"machine"`
		// Request that says so; "" in older logs. Only of it can the abort be taken off.
		Request types.UID `json:"request,omitempty"`
	}
	// EscalationStarted: the object of this escalation step is about to be created.
	EscalationStarted struct {
		Machine Subject `json:"machine"`
		Step    string  `json:"rung"`
		// Object that is made, so that it is found when the policy no longer says so; nil in older logs.
		Object *StepObject `json:"object,omitempty"`
	}
	// EscalationEnded: the machine did not recover by the step, or the step is over before its time. Version 1 is in upcast.go.
	EscalationEnded struct {
		Machine Subject `json:"machine"`
		Step    string  `json:"step"`
		// Outcome is "" in logs of version 1 that do not say it.
		Outcome StepOutcome `json:"outcome,omitempty"`
		// Reason is what of the step's object tells that it has failed.
		Reason string `json:"reason,omitempty"`
	}
	// SurgeRequested: the owner is about to be asked for one more machine. The original values are recorded, to be
	// restored later.
	SurgeRequested struct {
		Machine Subject `json:"machine"`
		Method  Verdict `json:"method"`
		Relaxed bool    `json:"relaxed,omitempty"`
		// Replicas before, and asked for; the same for a RolloutSurge.
		From  int32 `json:"from"`
		To    int32 `json:"to"`
		Where Where `json:"where"`
		// Entry is the owner's name in the topology; "" for a control plane, and in older logs.
		Entry string `json:"entry,omitempty"`
		// Cluster that has the topology: a later one of its name is another one. "" in older logs.
		Cluster types.UID      `json:"cluster,omitempty"`
		Trigger RolloutTrigger `json:"lever,omitempty"`
		// Original value of the rollout trigger, to be restored; "" for none.
		Original string `json:"original,omitempty"`
		// Pull is the value that the trigger is set to.
		TriggerValue string `json:"pull,omitempty"`
		// Baseline are the machines that were there.
		Baseline []Subject `json:"baseline"`
		Attempt  int       `json:"attempt"`
	}
	// HandedOver: the owner is about to be asked to remediate by its own, deleting first.
	HandedOver struct {
		Machine  Subject   `json:"machine"`
		Baseline []Subject `json:"baseline"`
		Attempt  int       `json:"attempt"`
	}
	// SurgeRelaxed: components of the machine are no longer well since the owner was asked, which makes no machine then: it is about
	// to be allowed to.
	SurgeRelaxed struct {
		Reason string `json:"reason"`
	}
	// Continued: of several remediations in progress, the one of this machine is the active one, which the facts that follow are about.
	Continued struct {
		Machine Subject `json:"machine"`
	}
	// Merged: the remediation of this machine ended, which rested. What was asked for it is taken back with the active one.
	Merged struct {
		Machine Subject `json:"machine"`
		Why     string  `json:"why"`
	}
	// ScaleRaised: the owner's replicas are what was asked for.
	ScaleRaised struct{}
	// ReplacementObserved: a machine exists that was not in the baseline.
	ReplacementObserved struct {
		Replacement Subject `json:"replacement"`
		// Extra: there is one already; this one is not wanted.
		Extra bool `json:"extra,omitempty"`
	}
	// ScaleRestored: the owner's replicas are what they were.
	ScaleRestored struct{}
	// ReplacementReady: it has joined and is well.
	ReplacementReady struct {
		Replacement Subject `json:"replacement"`
	}
	// VictimDeleting: the owner has begun to delete it.
	VictimDeleting struct{}
	// DrainSkipped: the machine's deletion has waited for its drain as long as the policy says; it is about to wait no longer.
	DrainSkipped struct {
		Since time.Time `json:"since"`
		After string    `json:"after"`
	}
	// VolumeDetachSkipped is the same for the volumes that had to be detached.
	VolumeDetachSkipped struct {
		Since time.Time `json:"since"`
		After string    `json:"after"`
	}
	// VictimGone: the machine no longer exists.
	VictimGone struct{}
	// SurgeConsumed: another client deleted a machine, and the new machine filled that gap; the unhealthy machine is
	// still there.
	SurgeConsumed struct {
		Why string `json:"why"`
		// Surprise: the owner itself deleted another machine than the one that is marked. It would again.
		Surprise bool `json:"surprise,omitempty"`
	}
	// CancelStarted: what was asked for is about to be taken back.
	CancelStarted struct {
		Cause  Cause  `json:"cause"`
		Reason string `json:"reason"`
	}
	// VictimSpared: of a cancellation, all that must come first is done; the victim may lose its mark now.
	VictimSpared struct{}
	// Frozen: the replacement in progress is not continued until the cause has passed.
	Frozen struct {
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
		Next   string `json:"next,omitempty"`
	}
	// Thawed: the cause has passed.
	Thawed struct{}
	// Succeeded ends a remediation: the victim is gone, its place is taken, nothing of ours is left behind.
	Succeeded struct {
		Note string `json:"note,omitempty"`
		// Gone: the replacement was there, and is gone. Other machines have the place.
		Gone bool `json:"gone,omitempty"`
	}
	// Cancelled ends one: the request was undone, and the older machines are still there.
	Cancelled struct {
		Cause Cause `json:"cause"`
	}
	// TransientFailure: an action failed with a transient error; it is tried again.
	TransientFailure struct {
		Message string `json:"message"`
	}
	// ClockSetBack: the log has something that is still to come, by the clock of now. What happened later than now counts as of now.
	ClockSetBack struct {
		By string `json:"by"`
	}
	// StormPassed: a mass failure that kept this owner waiting is over.
	StormPassed struct{}
	// EtcdReported: what etcd's members say of themselves has changed. Without Problems, those that were there are over.
	EtcdReported struct {
		Problems  []EtcdProblem `json:"problems,omitempty"`
		Leader    string        `json:"leader,omitempty"`
		Learners  []string      `json:"learners,omitempty"`
		Databases []Database    `json:"databases,omitempty"`
	}
	// DefragmentationWaits: a member of etcd should be defragmented, and is not for now. It is said again when the reason changes.
	DefragmentationWaits struct {
		Node   string `json:"node"`
		Reason string `json:"reason"`
	}
	// DefragmentationStarted: a member of etcd is about to be defragmented.
	DefragmentationStarted struct {
		Node string `json:"node"`
		// Leader: it leads, and hands over before.
		Leader bool     `json:"leader,omitempty"`
		Before Database `json:"before"`
		Reason string   `json:"reason"`
		// Until is when it must be over. Nothing is begun for the control plane before.
		Until time.Time `json:"until"`
	}
	// DefragmentationEnded: the member answers, or too late.
	DefragmentationEnded struct {
		Node    string                 `json:"node"`
		Outcome DefragmentationOutcome `json:"outcome"`
		Before  Database               `json:"before"`
		// After is empty where the member does not say it.
		After  Database `json:"after,omitzero"`
		Reason string   `json:"reason,omitempty"`
		// Next is what a human can do, if anything.
		Next string `json:"next,omitempty"`
	}
	// NoSpaceDisarmed: defragmentations made room, and the alarm NOSPACE is about to be disarmed.
	NoSpaceDisarmed struct {
		Members   []string   `json:"members"`
		Databases []Database `json:"databases"`
	}
	// Admitted to begin something for an owner. It is of no owner's aggregate: what begins something passes there first, in
	// whatever process, so that each has counted what the others have begun.
	Admitted struct {
		Holder string `json:"holder"`
		Owner  Owner  `json:"owner"`
	}
	// MassFailurePassed: one of the whole fleet, or of a failure domain, that kept this owner waiting is over.
	MassFailurePassed struct {
		Domain string `json:"domain,omitempty"`
	}
)

func (Registered) event()          {}
func (Claimed) event()             {}
func (MachineMarked) event()       {}
func (MachineMarkCleared) event()  {}
func (Decided) event()             {}
func (HoldSet) event()             {}
func (HoldReleased) event()        {}
func (AbortRequested) event()      {}
func (EscalationStarted) event()   {}
func (EscalationEnded) event()     {}
func (SurgeRequested) event()      {}
func (HandedOver) event()          {}
func (ReplacementObserved) event() {}
func (SurgeRelaxed) event()        {}
func (Continued) event()           {}
func (Merged) event()              {}
func (ScaleRaised) event()         {}
func (VictimSpared) event()        {}
func (ScaleRestored) event()       {}
func (ReplacementReady) event()    {}
func (VictimDeleting) event()      {}
func (DrainSkipped) event()        {}
func (VolumeDetachSkipped) event() {}
func (VictimGone) event()          {}
func (SurgeConsumed) event()       {}
func (CancelStarted) event()       {}
func (Frozen) event()              {}
func (Thawed) event()              {}
func (Succeeded) event()           {}
func (Cancelled) event()           {}
func (TransientFailure) event()    {}
func (ClockSetBack) event()        {}
func (StormPassed) event()         {}
func (Admitted) event()            {}
func (MassFailurePassed) event()   {}
func (EtcdReported) event()        {}

func (DefragmentationWaits) event()   {}
func (DefragmentationStarted) event() {}
func (DefragmentationEnded) event()   {}
func (NoSpaceDisarmed) event()        {}

func (e MachineMarked) machine() Subject      { return e.Machine }
func (e MachineMarkCleared) machine() Subject { return e.Machine }
func (e Decided) machine() Subject            { return e.Machine }
func (e HoldSet) machine() Subject            { return e.Machine }
func (e HoldReleased) machine() Subject       { return e.Machine }
func (e AbortRequested) machine() Subject     { return e.Machine }
func (e EscalationStarted) machine() Subject  { return e.Machine }
func (e EscalationEnded) machine() Subject    { return e.Machine }
func (e SurgeRequested) machine() Subject     { return e.Machine }
func (e HandedOver) machine() Subject         { return e.Machine }
func (e Merged) machine() Subject             { return e.Machine }
func (e Continued) machine() Subject          { return e.Machine }
