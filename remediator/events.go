package remediator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Event represents an event about an owner's machines.
type Event interface{ event() }

// The events. A remediation runs from SurgeRequested or HandedOver to Succeeded, Cancelled, SurgeConsumed or Merged.
type (
	// Registered identifies the owner of the aggregate. It is the first event. It is recorded again
	// if the owner has more events after the view has deleted it.
	Registered struct {
		Owner Owner `json:"owner"`
	}
	// Claimed records that a process from now on writes the events of the owner. The next append of
	// any process that claimed the owner before fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// MachineMarked records the state of a machine that is unhealthy or about to be. It is recorded
	// again when it changes.
	MachineMarked struct {
		Machine Subject   `json:"machine"`
		State   markState `json:"state"`
		Reason  string    `json:"reason"`
		Source  source    `json:"source"`
		Since   time.Time `json:"since"`
		// FailureDomain is the failure domain of the machine; "" if it has none, and in older logs.
		FailureDomain string `json:"failureDomain,omitempty"`
		// FailingSince contains the failing checks of conditions that scute reads from the Node,
		// each with the time at which scute first observed the failure.
		FailingSince map[string]time.Time `json:"failingSince,omitempty"`
		// Failing means that a check of the machine fails too, if the source is a notice.
		Failing bool `json:"failing,omitempty"`
	}
	// MachineMarkCleared records that the machine is healthy again, or gone, or no longer selected by a policy.
	MachineMarkCleared struct {
		Machine Subject `json:"machine"`
		// Cause is Recovered ("" in older logs), Deselected or MachineGone.
		Cause  cause  `json:"cause,omitempty"`
		Reason string `json:"reason"`
	}
	// Decided records a decision about a machine, and its evidence. It is recorded again when the decision changes.
	Decided struct {
		Machine  Subject  `json:"machine"`
		Decision Decision `json:"decision"`
		Evidence Evidence `json:"evidence"`
	}
	// HoldSet records that an operator holds the machine until Until. A zero Until means until the hold is removed.
	HoldSet struct {
		Machine Subject   `json:"machine"`
		Until   time.Time `json:"until,omitzero"`
		Reason  string    `json:"reason,omitempty"`
		// Request is the request with the hold; "" in older logs. The hold ends when it is removed
		// from this request, or from a request that it was copied to.
		Request types.UID `json:"request,omitempty"`
	}
	// HoldReleased records that a hold or an abort was removed. scute decides again about the
	// machine, and resets the counts of its attempts and of the consecutive replacements that led
	// to it.
	HoldReleased struct {
		Machine Subject `json:"machine"`
	}
	// AbortRequested records an operator's abort: the replacement in progress is cancelled, and no
	// other replacement starts for the machine.
	AbortRequested struct {
		Machine Subject `json:"machine"`
		// Request is the request with the abort; "" in older logs. The abort ends when it is
		// removed from this request, or from a request that it was copied to.
		Request types.UID `json:"request,omitempty"`
	}
	// EscalationStarted records that the object of this escalation step is about to be created.
	EscalationStarted struct {
		Machine Subject `json:"machine"`
		Step    string  `json:"step"`
		// Object identifies the step's object, so that it can be deleted even if the policy no
		// longer has the step; nil in older logs.
		Object *StepObject `json:"object,omitempty"`
	}
	// EscalationEnded records that an escalation step failed, timed out or was cancelled. Version 1 is in catalog.go.
	EscalationEnded struct {
		Machine Subject `json:"machine"`
		Step    string  `json:"step"`
		// Outcome is "" in logs of version 1 that do not contain it.
		Outcome stepOutcome `json:"outcome,omitempty"`
		// Reason is the field of the step's object that shows its failure.
		Reason string `json:"reason,omitempty"`
	}
	// SurgeRequested records that scute is about to request an additional machine from the owner.
	// It contains the original values, which are restored later.
	SurgeRequested struct {
		Machine Subject `json:"machine"`
		Method  Verdict `json:"method"`
		Relaxed bool    `json:"relaxed,omitempty"`
		// From and To are the replicas before and during the surge; they are equal for a RolloutSurge.
		From  int32 `json:"from"`
		To    int32 `json:"to"`
		Where Where `json:"where"`
		// Entry is the owner's name in the topology; "" for a control plane, and in older logs.
		Entry string `json:"entry,omitempty"`
		// Cluster is the UID of the Cluster with the topology, because a later Cluster may have its
		// name. "" in older logs.
		Cluster types.UID      `json:"cluster,omitempty"`
		Trigger RolloutTrigger `json:"trigger,omitempty"`
		// Original is the original value of the rollout trigger, which is restored later; "" for none.
		Original string `json:"original,omitempty"`
		// TriggerValue is the value that the trigger is set to.
		TriggerValue string `json:"triggerValue,omitempty"`
		// Baseline contains the machines that existed when the surge was requested.
		Baseline []Subject `json:"baseline"`
		Attempt  int       `json:"attempt"`
	}
	// HandedOver records that the owner is about to be asked to remediate the machine itself, by deleting it first.
	HandedOver struct {
		Machine  Subject   `json:"machine"`
		Baseline []Subject `json:"baseline"`
		Attempt  int       `json:"attempt"`
	}
	// SurgeRelaxed records that the owner's preflight checks are about to be relaxed, because
	// components of the machine have become unhealthy since the surge was requested, and the owner
	// would otherwise create no machine.
	SurgeRelaxed struct {
		Reason string `json:"reason"`
	}
	// Continued records that, of several remediations in progress, that of this machine becomes the
	// active one, which later events are about.
	Continued struct {
		Machine Subject `json:"machine"`
	}
	// Merged ends the resting remediation of this machine, and adds its request to the active
	// remediation, which then undoes both.
	Merged struct {
		Machine Subject `json:"machine"`
		Reason  string  `json:"reason"`
	}
	// ScaleRaised records that the owner has the requested replicas.
	ScaleRaised struct{}
	// ReplacementObserved records a new machine, which is not in the baseline.
	ReplacementObserved struct {
		Replacement Subject `json:"replacement"`
		// Extra means that there already is a replacement, so this machine is surplus.
		Extra bool `json:"extra,omitempty"`
	}
	// ScaleRestored records that the owner has its original replicas again.
	ScaleRestored struct{}
	// ReplacementReady records that the replacement has joined and is healthy.
	ReplacementReady struct {
		Replacement Subject `json:"replacement"`
	}
	// VictimDeleting records that the owner has started to delete the unhealthy machine.
	VictimDeleting struct{}
	// DrainSkipped records that the machine's deletion is about to continue without a drain,
	// because the policy's timeout has passed.
	DrainSkipped struct {
		Since time.Time `json:"since"`
		After string    `json:"after"`
	}
	// VolumeDetachSkipped records that the machine's deletion is about to continue although volumes
	// are still attached, because the policy's timeout has passed.
	VolumeDetachSkipped struct {
		Since time.Time `json:"since"`
		After string    `json:"after"`
	}
	// VictimGone records that the unhealthy machine no longer exists.
	VictimGone struct{}
	// SurgeConsumed ends a remediation whose new machine took the place of a machine other than the
	// unhealthy one, which was deleted. The unhealthy machine still exists.
	SurgeConsumed struct {
		Reason string `json:"reason"`
		// WrongMachine means that the owner itself deleted a machine other than the one with the
		// delete annotation, and would do so again.
		WrongMachine bool `json:"wrongMachine,omitempty"`
	}
	// CancelStarted records that a remediation is cancelled, and its request is about to be undone.
	CancelStarted struct {
		Cause  cause  `json:"cause"`
		Reason string `json:"reason"`
	}
	// VictimSpared records that a cancellation is about to remove the delete annotation of the
	// unhealthy machine.
	VictimSpared struct{}
	// Frozen records that the remediation in progress stops until its cause no longer applies.
	Frozen struct {
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
		Next   string `json:"next,omitempty"`
	}
	// Thawed records that the cause of a freeze no longer applies, and the remediation continues.
	Thawed struct{}
	// Succeeded ends a remediation: the unhealthy machine is gone and replaced, and nothing of scute remains.
	Succeeded struct {
		Note string `json:"note,omitempty"`
		// Gone means that the replacement existed and is gone. Other machines have replaced it.
		Gone bool `json:"gone,omitempty"`
	}
	// Cancelled ends a remediation without success, after its request was undone.
	Cancelled struct {
		Cause cause `json:"cause"`
	}
	// TransientFailure records that an action failed with a transient error, and is retried.
	TransientFailure struct {
		Message string `json:"message"`
	}
	// ClockSetBack records that the log has times in the future, because the clock was set back.
	// They are replaced by the time of this event.
	ClockSetBack struct {
		By string `json:"by"`
	}
	// PolicyMassFailurePassed records that a mass failure of the policy, for which this owner waited, is over.
	PolicyMassFailurePassed struct{}
	// EtcdReported records a change of what etcd's members report. Problems that it does not contain are over.
	EtcdReported struct {
		Problems  []EtcdProblem `json:"problems,omitempty"`
		Leader    string        `json:"leader,omitempty"`
		Learners  []string      `json:"learners,omitempty"`
		Databases []Database    `json:"databases,omitempty"`
	}
	// DefragmentationWaits records why a member of etcd is not defragmented although it should be.
	// It is recorded again when the reason changes.
	DefragmentationWaits struct {
		Node   string `json:"node"`
		Reason string `json:"reason"`
	}
	// DefragmentationStarted records that a member of etcd is about to be defragmented.
	DefragmentationStarted struct {
		Node string `json:"node"`
		// Leader reports whether the member is the leader. If so, the leadership is transferred
		// before the defragmentation.
		Leader bool     `json:"leader,omitempty"`
		Before Database `json:"before"`
		Reason string   `json:"reason"`
		// Until is the deadline. Nothing else is started for the control plane until the defragmentation has ended.
		Until time.Time `json:"until"`
	}
	// DefragmentationEnded records how a defragmentation ended.
	DefragmentationEnded struct {
		Node    string                 `json:"node"`
		Outcome DefragmentationOutcome `json:"outcome"`
		Before  Database               `json:"before"`
		// After is empty if the member does not report it.
		After  Database `json:"after,omitzero"`
		Reason string   `json:"reason,omitempty"`
		// Next is what a human can do, if anything.
		Next string `json:"next,omitempty"`
	}
	// NoSpaceDisarmed records that the alarm NOSPACE is about to be disarmed, because
	// defragmentations have freed space.
	NoSpaceDisarmed struct {
		Members   []string   `json:"members"`
		Databases []Database `json:"databases"`
	}
	// Admitted records that a process is about to start a replacement or an escalation step for an
	// owner. It is in an aggregate to which all processes append before they start anything, so
	// that each process counts the starts of all other processes. It is not in the owner's
	// aggregate.
	Admitted struct {
		Holder string `json:"holder"`
		Owner  Owner  `json:"owner"`
	}
	// MassFailurePassed records that a mass failure of the fleet or of a failure domain, for which
	// this owner waited, is over.
	MassFailurePassed struct {
		Domain string `json:"domain,omitempty"`
	}
)

func (Registered) event()              {}
func (Claimed) event()                 {}
func (MachineMarked) event()           {}
func (MachineMarkCleared) event()      {}
func (Decided) event()                 {}
func (HoldSet) event()                 {}
func (HoldReleased) event()            {}
func (AbortRequested) event()          {}
func (EscalationStarted) event()       {}
func (EscalationEnded) event()         {}
func (SurgeRequested) event()          {}
func (HandedOver) event()              {}
func (ReplacementObserved) event()     {}
func (SurgeRelaxed) event()            {}
func (Continued) event()               {}
func (Merged) event()                  {}
func (ScaleRaised) event()             {}
func (VictimSpared) event()            {}
func (ScaleRestored) event()           {}
func (ReplacementReady) event()        {}
func (VictimDeleting) event()          {}
func (DrainSkipped) event()            {}
func (VolumeDetachSkipped) event()     {}
func (VictimGone) event()              {}
func (SurgeConsumed) event()           {}
func (CancelStarted) event()           {}
func (Frozen) event()                  {}
func (Thawed) event()                  {}
func (Succeeded) event()               {}
func (Cancelled) event()               {}
func (TransientFailure) event()        {}
func (ClockSetBack) event()            {}
func (PolicyMassFailurePassed) event() {}
func (Admitted) event()                {}
func (MassFailurePassed) event()       {}
func (EtcdReported) event()            {}

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
