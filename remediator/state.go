package remediator

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// historyLimit bounds how many ended remediations a state remembers: those that limits, cooldowns and people ask for.
const historyLimit = 20

// keptStarts bounds how many starts a state remembers: more than any policy allows within its window.
const keptStarts = 1000

// State is everything that the log says of one owner's machines.
type State struct {
	Owner  Owner
	Holder string
	// Last is when the last event was decided, by the clock that was most ahead since one was set back.
	Last time.Time

	// Unhealthy are the machines that are unhealthy, or were and are retained for a cooldown.
	Unhealthy map[types.UID]*UnhealthyMachine
	// Active is the remediation in progress, nil without one. Where there are several, it is the one that the last facts were about.
	Active *Active
	// Resting are the others: only workers have several at once.
	Resting []*Active
	// Ends are the last remediations that ended, the newest last.
	History []PastRemediation
	// Starts are when remediations were begun, the newest last. What recovered by itself is none.
	Starts []time.Time
	// Chain says how many replacements in a row led to a machine that is alive.
	Chain map[types.UID]Link

	// InMassFailure reports whether the owner waits for a mass failure of its policy, MassFailureEnded when the last one ended. Mass has those of
	// the fleet and of failure domains.
	InMassFailure    bool
	MassFailureEnded time.Time
	Mass             MassFailures

	// Etcd is what its members said, as it was recorded last; nil without.
	Etcd *EtcdReport
	// Care is what was done about its databases.
	Care EtcdCare

	Failure      string
	FailingSince time.Time
}

// proven is how long a replacement must have been well to end a chain of failures: what is wrong with it then is something
// else. It is the default of a control plane's own minHealthyPeriod.
const proven = time.Hour

// Link of a chain of replacements that failed in turn.
type Link struct {
	Length int
	At     time.Time // when the machine took its place
}

// UnhealthyMachine is what the log records of one machine.
type UnhealthyMachine struct {
	Subject
	// Mark is nil when the machine is healthy, as far as the log knows.
	Mark *MachineMarked
	// MarkedAt is when it was first marked in this illness, UnhealthyAt when it was found Unhealthy.
	MarkedAt    time.Time
	UnhealthyAt time.Time

	Decision  Decision
	Evidence  Evidence
	DecidedAt time.Time

	Held      bool
	HoldUntil time.Time
	HoldWhy   string
	HeldBy    types.UID // the request that says so
	Aborted   bool
	AbortedBy types.UID // the request that says so

	// Unplaced: a replacement that was to come first was not there, or not ready, in time.
	Unplaced bool
	// Unmade: the owner made no machine in time in a rollout that it was asked for.
	Unmade bool
	// Surprised: its owner deleted a healthy machine in its place.
	Surprised bool

	// EscalationStep is the current escalation step, "" without; CompletedSteps are the completed ones.
	EscalationStep  string
	EscalationSince time.Time
	CompletedSteps  []string
	// EarlierSteps is how many of these were completed in an earlier illness.
	EarlierSteps int
	// Objects that escalation steps created, by step.
	Objects map[string]StepObject

	// Attempts begun, and when the last one ended (or the machine recovered). They are counted as long as the machine does
	// not prove that it is well.
	Attempts    int
	LastAttempt time.Time
	ClearedAt   time.Time
}

// Active is the remediation in progress.
type Active struct {
	Victim  Subject
	Request SurgeRequested // its Method is OwnerRemediation for one that was handed over
	// Step is how far it has come.
	Step      Step
	Since     time.Time // of the step
	StartedAt time.Time
	// FailureDomain of the victim, as its mark says.
	FailureDomain string

	Replacement Subject
	Extras      []Subject // surplus new machines
	Ready       bool      // the replacement is
	Scale       Scaled    // what became of the replicas
	// Merged: what was asked for others that were in progress belongs to it.
	Merged bool
	// SkipsDrain and SkipsDetach: the victim's deletion is to wait no longer for that.
	SkipsDrain, SkipsDetach bool

	Cause  Cause // of the cancellation
	Reason string
	// Resumed is how often it was continued after it was being taken back.
	Resumed int

	// Frozen is the rule that froze it, "" for none.
	Frozen       string
	FrozenAt     time.Time
	FrozenReason string
	FrozenNext   string
}

// Step is a state of a remediation. What each means, and every way out of it, is in the table steps.
type Step string

// The steps.
const (
	Requesting Step = "requesting"
	Replacing  Step = "replacing"
	Removing   Step = "removing"
	Deleting   Step = "deleting"
	Settling   Step = "settling"
	Cancelling Step = "cancelling"
	Sparing    Step = "sparing"
)

// Scaled is what became of the replicas that were asked for.
type Scaled string

// The values.
const (
	ScaleUnseen Scaled = ""         // they were not observed yet
	ScaleUp     Scaled = "raised"   // they were seen
	ScaleBack   Scaled = "restored" // they are what they were
)

// takingBack says that what was asked for is taken back.
func (a *Active) takingBack() bool { return a.Step == Cancelling || a.Step == Sparing }

// Outcome of a remediation.
type Outcome string

// The outcomes.
const (
	EndSucceeded Outcome = "Succeeded"
	EndCancelled Outcome = "Cancelled"
	EndRecovered Outcome = "Recovered" // the mark was taken off before anything was begun; Cause says why
)

// PastRemediation is a remediation that has ended.
type PastRemediation struct {
	Victim      Subject
	Replacement Subject
	Extras      []Subject // surplus new machines
	Method      Verdict
	Relaxed     bool
	Outcome     Outcome
	Cause       Cause
	Note        string
	Decision    Decision
	Evidence    Evidence
	Attempts    int
	MarkedAt    time.Time
	StartedAt   time.Time
	StepSince   time.Time // when the escalation step began that was in progress when the machine recovered
	EndedAt     time.Time
	Reason      string // of the mark
}

// ID names the remediation of a machine to people: the owner's aggregate, and the machine.
func (o Owner) ID() string {
	uid := string(o.UID)
	return o.Namespace + "/" + o.Name + "/" + uid[:min(len(uid), 8)]
}

// Remediation is the id of a machine's remediation.
func (o Owner) Remediation(machine string) string { return o.ID() + "/" + machine }

func (s *State) recordOf(m Subject) *UnhealthyMachine {
	if s.Unhealthy == nil {
		s.Unhealthy = make(map[types.UID]*UnhealthyMachine)
	}
	u := s.Unhealthy[m.UID]
	if u == nil {
		u = &UnhealthyMachine{Subject: m}
		s.Unhealthy[m.UID] = u
	}
	return u
}

// Clone is a copy that shares nothing that Apply changes.
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
	c.Mass = MassFailures{Waited: maps.Clone(s.Mass.Waited), Passed: maps.Clone(s.Mass.Passed)}
	c.Care.Done = maps.Clone(s.Care.Done)
	c.History, c.Starts, c.Chain = slices.Clone(s.History), slices.Clone(s.Starts), maps.Clone(s.Chain)
	return &c
}

func (a *Active) clone() *Active {
	c := *a
	c.Extras, c.Request.Baseline = slices.Clone(a.Extras), slices.Clone(a.Request.Baseline)
	return &c
}
