package remediator

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// historyLimit is the maximum number of ended remediations in a state. Limits, cooldowns and users need no older ones.
const historyLimit = 20

// startsLimit is the maximum number of starts in a state. It is more than any policy permits within its window.
const startsLimit = 1000

// State is everything that the log records about the machines of one owner.
type State struct {
	Owner  Owner
	Holder string
	// Last is the time of the latest event. ClockSetBack resets it.
	Last time.Time

	// Unhealthy contains the records of machines that are unhealthy, and of machines that were,
	// with their holds, aborts and attempts.
	Unhealthy map[types.UID]*UnhealthyMachine
	// Active is the remediation in progress, or nil. If several are in progress, it is the one that
	// the last events were about.
	Active *Active
	// Resting contains the other remediations in progress, which only wait. Only owners of workers
	// have several at once.
	Resting []*Active
	// History holds the last ended remediations, the newest last.
	History []pastRemediation
	// Starts contains the times at which remediations started, the newest last. A remediation
	// starts with its first escalation step, or with the request for a replacement.
	Starts []time.Time
	// Chain contains, for each machine that replaced another one, the number of consecutive
	// replacements that led to it.
	Chain map[types.UID]chainLink

	// InMassFailure means that the owner waits for a mass failure of its policy to end.
	// MassFailureEnded is the time at which the last one ended. Mass contains the mass failures of
	// the fleet and of failure domains.
	InMassFailure    bool
	MassFailureEnded time.Time
	Mass             massFailures

	Etcd        etcdReport
	Maintenance etcdMaintenance

	Failure      string
	FailingSince time.Time
}

// provenAfter is how long a replacement must have been healthy to end a chain of failed
// replacements. A later failure is assumed to have another cause. The value is the default of
// minHealthyPeriod of a KubeadmControlPlane.
const provenAfter = time.Hour

// chainLink is the position of a machine in a chain of replacements that failed in turn.
type chainLink struct {
	Length int
	At     time.Time // when the remediation that created it ended
}

// UnhealthyMachine is the record of one machine in the log.
type UnhealthyMachine struct {
	Subject
	// Mark has no State if the machine is healthy according to the log.
	Mark MachineMarked
	// MarkedAt is the time of the first mark since the machine was last healthy. UnhealthyAt is the
	// time of the first mark with the state Unhealthy.
	MarkedAt    time.Time
	UnhealthyAt time.Time

	Decision  Decision
	Evidence  Evidence
	DecidedAt time.Time

	Held       bool
	HoldUntil  time.Time
	HoldReason string
	HeldBy     types.UID // the request with the hold
	Aborted    bool
	AbortedBy  types.UID // the request with the abort

	// ReplacementTimedOut means that a surge timed out: its replacement was not created, or not ready, in time.
	ReplacementTimedOut bool
	// RolloutTimedOut means that a RolloutSurge timed out because the owner created no machine.
	RolloutTimedOut bool
	// WrongMachineDeleted means that the owner deleted a healthy machine instead of this one.
	WrongMachineDeleted bool

	// EscalationStep is the current escalation step, or "".
	EscalationStep  string
	EscalationSince time.Time
	CompletedSteps  []string
	// EarlierSteps is the number of steps that were completed before MarkedAt.
	EarlierSteps int
	// Objects are the objects that escalation steps created, by step.
	Objects map[string]StepObject

	// Attempts is the number of attempts to replace the machine. It is reset when the machine has
	// been healthy for longer than provenAfter. LastAttempt is when the last attempt or escalation
	// step started or the last attempt ended. ClearedAt is when the machine recovered.
	Attempts    int
	LastAttempt time.Time
	ClearedAt   time.Time
}

// Active is a remediation in progress.
type Active struct {
	Victim    Subject
	Request   SurgeRequested // Method is OwnerRemediation if the owner remediates the machine itself
	Step      Step
	Since     time.Time // start of the step
	StartedAt time.Time
	// FailureDomain is the failure domain of the victim according to its mark.
	FailureDomain string

	Replacement Subject
	Extras      []Subject  // surplus new machines
	Ready       bool       // whether the replacement is ready
	Scale       scaleState // state of the requested replicas
	// Merged means that the remediation includes the requests of other remediations.
	Merged bool
	// SkipsDrain means that the deletion of the victim must no longer wait for the drain of its
	// Node, and SkipsDetach that it must no longer wait for volumes to be detached.
	SkipsDrain, SkipsDetach bool

	Cause  cause // of the cancellation
	Reason string
	// Resumed is how often the remediation continued after its cancellation had started.
	Resumed int

	// Frozen is the name of the rule that froze the remediation, or "".
	Frozen       string
	FrozenAt     time.Time
	FrozenReason string
	FrozenNext   string
}

// Step is a state of a remediation. The table steps describes each state and its transitions.
type Step string

const (
	requesting Step = "requesting"
	replacing  Step = "replacing"
	removing   Step = "removing"
	deleting   Step = "deleting"
	settling   Step = "settling"
	cancelling Step = "cancelling"
	sparing    Step = "sparing"
)

type scaleState string

// States of the requested replicas.
const (
	scaleUnobserved scaleState = ""         // not observed yet
	scaleRaised     scaleState = "raised"   // observed
	scaleRestored   scaleState = "restored" // at the original value again
)

func (a *Active) isCancelling() bool { return a.Step == cancelling || a.Step == sparing }

type outcome string

// Outcomes of a remediation.
const (
	EndSucceeded outcome = "Succeeded"
	EndCancelled outcome = "Cancelled"
	EndRecovered outcome = "Recovered" // the mark was removed before a replacement was requested; Cause is the reason
)

type pastRemediation struct {
	Victim      Subject
	Replacement Subject
	Extras      []Subject // surplus new machines
	Method      Verdict
	Relaxed     bool
	Outcome     outcome
	Cause       cause
	Note        string
	Decision    Decision
	Evidence    Evidence
	Attempts    int
	MarkedAt    time.Time
	StartedAt   time.Time
	StepSince   time.Time // start of the escalation step in which the machine recovered
	EndedAt     time.Time
	Reason      string // of the mark
}

// ID returns the name of the owner's aggregate.
func (o Owner) ID() string {
	uid := string(o.UID)
	return o.Namespace + "/" + o.Name + "/" + uid[:min(len(uid), 8)]
}

// Remediation returns the ID of a machine's remediation, for users.
func (o Owner) Remediation(machine string) string { return o.ID() + "/" + machine }

// record returns the record of a machine, or an empty one without a UID.
func (s *State) record(uid types.UID) *UnhealthyMachine {
	if u := s.Unhealthy[uid]; u != nil {
		return u
	}
	return &UnhealthyMachine{}
}

// recordOf returns the record of a machine, and adds it if there is none.
func (s *State) recordOf(m Subject) *UnhealthyMachine {
	if s.Unhealthy[m.UID] == nil {
		put(&s.Unhealthy, m.UID, &UnhealthyMachine{Subject: m})
	}
	return s.Unhealthy[m.UID]
}

// Clone returns a copy of the state. It shares only data that Apply does not change.
func (s *State) Clone() *State {
	c := *s
	c.Unhealthy = make(map[types.UID]*UnhealthyMachine, len(s.Unhealthy))
	for uid, u := range s.Unhealthy {
		copied := *u
		copied.CompletedSteps, copied.Objects = slices.Clone(u.CompletedSteps), maps.Clone(u.Objects)
		c.Unhealthy[uid] = &copied
	}
	if s.Active != nil {
		c.Active = s.Active.clone()
	}
	c.Resting = nil
	for _, a := range s.Resting {
		c.Resting = append(c.Resting, a.clone())
	}
	c.Mass = massFailures{Pending: maps.Clone(s.Mass.Pending), Ended: maps.Clone(s.Mass.Ended)}
	c.Maintenance.Done = maps.Clone(s.Maintenance.Done)
	c.History, c.Starts, c.Chain = slices.Clone(s.History), slices.Clone(s.Starts), maps.Clone(s.Chain)
	return &c
}

func (a *Active) clone() *Active {
	c := *a
	c.Extras, c.Request.Baseline = slices.Clone(a.Extras), slices.Clone(a.Request.Baseline)
	return &c
}
