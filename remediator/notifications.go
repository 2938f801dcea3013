package remediator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
)

// Notification is a Kubernetes event that informs users of a fact in the log.
type Notification struct {
	// Machine is the subject of the event. It is the zero value if the fact is about the owner alone.
	Machine Subject
	// Owner means that the machine's owner gets the event too.
	Owner   bool
	Warning bool
	Reason  string
	// Note is one sentence with what happens next.
	Note string
}

// notificationRule determines the notification for a type of fact.
type notificationRule struct {
	fact           Event // zero value of the type
	when           string
	reason         string
	warning, owner bool
	ownerOnly      bool // only the owner gets the event
	// note returns the note, or "" if the rule does not apply.
	note func(s *State, e Event) string
}

// newNotificationRule returns a rule for a type of fact.
func newNotificationRule[E Event](reason, when string, says func(s *State, e E) string) notificationRule {
	var sample E
	return notificationRule{fact: sample, when: when, reason: reason, note: func(s *State, e Event) string {
		fact, is := e.(E)
		if !is {
			return ""
		}
		return says(s, fact)
	}}
}

func (t notificationRule) asWarning() notificationRule {
	t.warning = true
	return t
}

func (t notificationRule) alsoForOwner() notificationRule {
	t.owner = true
	return t
}

func (t notificationRule) onlyForOwner() notificationRule {
	t.ownerOnly = true
	return t.alsoForOwner()
}

// notificationRules are the rules for all notifications. The first rule of a fact that returns a note applies. Facts that follow from a fact with a
// notification, or only concern the log, have no rule.
//
// The table in docs/remediation.md lists the same rules.
//
//nolint:gochecknoglobals // a table
var notificationRules = []notificationRule{
	newNotificationRule("NoticeSeen", "the machine is healthy, and a [notice](#machines-that-are-about-to-stop) says that it stops", func(s *State, e MachineMarked) string {
		next := "scute decides how it is replaced"
		if e.State == Failing {
			next = "it is replaced from the notice's lead time on"
		}
		return formatIf(e.Source == FromNotice && !s.hasMark(e), "The machine is about to stop: %s; next: %s", e.Reason, next)
	}),
	newNotificationRule("HealthCheckFailing", "a check of the machine fails, and its time is not over", func(s *State, e MachineMarked) string {
		return formatIf(e.State == Failing && !s.hasMark(e), "%s; next: the machine is unhealthy when the time of the check is over", describeMark(e))
	}).asWarning(),
	newNotificationRule("MachineUnhealthy", "the machine is unhealthy", func(s *State, e MachineMarked) string {
		return formatIf(e.State == Unhealthy && !s.hasMark(e), "%s; next: scute decides how it is replaced", describeMark(e))
	}).asWarning(),
	newNotificationRule("MachineRecovered", "the machine is healthy again, or its notice is gone", func(s *State, e MachineMarkCleared) string {
		if u := s.Unhealthy[e.Machine.UID]; e.Cause == Recovered && u != nil && u.hasNotice() {
			return "The notice is gone; nothing more is done"
		}
		return formatIf(e.Cause == Recovered || e.Cause == "", "The machine is healthy again; nothing more is done")
	}),
	newNotificationRule("MachineMarkCleared", "the machine is gone, or no policy selects it any more", func(_ *State, e MachineMarkCleared) string {
		return "The mark is removed: " + e.Reason
	}),
	newNotificationRule("RemediationDryRun", "something would be done, and the policy is a dry run", func(_ *State, e Decided) string {
		return formatIf(e.Evidence.DryRun && e.Decision.acts(), "Dry run, nothing is done; it would be %s", e.Decision.describe())
	}),
	newNotificationRule("RemediationHeld", "the policy holds the machine", func(_ *State, e Decided) string {
		return formatIf(e.Decision.Rule == "policy-hold", "%s; next: it is decided again after that", e.Decision.describe())
	}),
	newNotificationRule("RemediationWaiting", "something else comes first; the rule says what", func(_ *State, e Decided) string {
		told := e.Decision.Rule == "hold" || e.Decision.Rule == "aborted" // the operator's request has a notification
		return formatIf(e.Decision.Verdict == Wait && !told, "%s; next: %s", e.Decision.describe(), cmp.Or(e.Decision.Next, "it is decided again when that has passed"))
	}),
	newNotificationRule("RemediationFrozen", "acting would be dangerous", func(_ *State, e Decided) string {
		return formatIf(e.Decision.Verdict == Freeze, "%s; next: %s", e.Decision.describe(), cmp.Or(e.Decision.Next, continues))
	}).asWarning().alsoForOwner(),
	newNotificationRule("CannotRemediate", "no method is safe, or all attempts failed; a human is needed", func(_ *State, e Decided) string {
		return formatIf(e.Decision.Verdict == CannotRemediate, "%s; next: %s", e.Decision.describe(), cmp.Or(e.Decision.Next, "replace the machine by hand"))
	}).asWarning().alsoForOwner(),
	newNotificationRule("RemediationHeld", "an operator holds the machine", func(_ *State, e HoldSet) string {
		return "Held by an operator" + formatUntil(e.Until) + formatReason(e.Reason) + "; next: nothing is begun before it is released" + formatIf(!e.Until.IsZero(), ", or that time has come")
	}),
	newNotificationRule("RemediationReleased", "an operator releases the machine", func(*State, HoldReleased) string {
		return "Released by an operator; next: it is decided again"
	}),
	newNotificationRule("RemediationAborted", "an operator aborts the remediation", func(*State, AbortRequested) string {
		return "Aborted by an operator; next: the replacement is cancelled, and nothing is begun before it is released"
	}),
	newNotificationRule("EscalationStarted", "a step of the policy's escalation is tried", func(_ *State, e EscalationStarted) string {
		return fmt.Sprintf("Step %s of the policy's escalation is tried; next: a replacement, if the machine does not recover in time", e.Step)
	}),
	newNotificationRule("EscalationEnded", "the step did not make the machine healthy in time, or failed", func(_ *State, e EscalationEnded) string {
		if e.Outcome == StepFailed {
			return fmt.Sprintf("Step %s has failed, as %s; next: the step after it, or a replacement", e.Step, e.Reason)
		}
		return fmt.Sprintf("Step %s did not make the machine healthy; next: the step after it, or a replacement", e.Step)
	}).asWarning(),
	newNotificationRule("ReplacementRequested", "the owner is asked for a replacement", func(s *State, e SurgeRequested) string {
		return fmt.Sprintf("%s is asked for another machine%s; next: it creates one, and deletes this machine when that one is ready", s.Owner.title(), s.describeDecision(e.Machine))
	}).alsoForOwner(),
	newNotificationRule("OwnerRemediationRequested", "the owner is asked to remediate, deleting first", func(s *State, e HandedOver) string {
		return fmt.Sprintf("%s is asked to remediate%s; next: it deletes this machine, and creates another", s.Owner.title(), s.describeDecision(e.Machine))
	}).alsoForOwner(),
	newNotificationRule("ReplacementCreated", "the replacement exists", func(s *State, e ReplacementObserved) string {
		if e.Extra {
			return ""
		}
		return fmt.Sprintf("Machine %s exists and is not ready; next: %s", e.Replacement.Name, s.afterReady())
	}),
	newNotificationRule("ReplacementReady", "the replacement has joined, and is ready", func(s *State, e ReplacementReady) string {
		if s.victimDeleting() {
			return fmt.Sprintf("Machine %s is ready", e.Replacement.Name)
		}
		return fmt.Sprintf("Machine %s is ready; next: %s deletes this machine", e.Replacement.Name, s.Owner.Name)
	}),
	newNotificationRule("MachineDeleting", "the machine is being deleted", func(*State, VictimDeleting) string {
		return "The machine is being deleted; next: its place is taken when it is gone"
	}),
	newNotificationRule("DrainSkipped", "the Node was not drained within `removal.drainTimeout`", func(*State, DrainSkipped) string {
		return "The drain of the Node took too long, and is not waited for any more; next: the machine's volumes are detached"
	}).asWarning(),
	newNotificationRule("VolumeDetachSkipped", "volumes were not detached within `removal.volumeDetachTimeout`", func(*State, VolumeDetachSkipped) string {
		return "The detaching of volumes took too long, and is not waited for any more; next: the machine's infrastructure is deleted"
	}).asWarning(),
	newNotificationRule("MachineDeleted", "the machine is gone, and its replacement is not ready yet", func(s *State, _ VictimGone) string {
		return formatIf(s.Active == nil || !s.Active.Ready, "The machine is gone; next: %s creates another, and that becomes ready", s.Owner.Name)
	}),
	newNotificationRule("ReplacementConsumed", "another client deleted a machine, and the replacement has its place", func(_ *State, e SurgeConsumed) string {
		return e.Reason + "; next: it is decided again"
	}).asWarning(),
	newNotificationRule("RemediationCancelling", "the replacement is cancelled", func(_ *State, e CancelStarted) string {
		return "What was begun is taken back: " + e.Reason
	}).asWarning(),
	newNotificationRule("RemediationFrozen", "the replacement must not continue for now", func(_ *State, e Frozen) string {
		return fmt.Sprintf("Frozen by rule %s: %s; next: %s", e.Rule, e.Reason, cmp.Or(e.Next, continues))
	}).asWarning().alsoForOwner(),
	newNotificationRule("RemediationResumed", "the cause of the freeze has passed", func(*State, Thawed) string {
		return "What froze it has passed; the remediation continues"
	}),
	newNotificationRule("ActionFailed", "a write failed, and is tried again", func(_ *State, e TransientFailure) string {
		return e.Message + "; next: it is tried again"
	}).asWarning(),
	newNotificationRule("RemediationSucceeded", "the machine is replaced", func(s *State, e Succeeded) string {
		return "Replaced by " + s.replacement() + formatIf(e.Note != "", "; %s", e.Note)
	}).alsoForOwner(),
	newNotificationRule("RemediationCancelled", "the replacement was cancelled, because the machine is healthy", func(_ *State, e Cancelled) string {
		return formatIf(e.Cause == Recovered, "What was begun is taken back: the machine is healthy again")
	}).alsoForOwner(),
	newNotificationRule("RemediationCancelled", "the replacement is cancelled", func(s *State, e Cancelled) string {
		why := string(e.Cause)
		if s.Active != nil && s.Active.Reason != "" {
			why = s.Active.Reason
		}
		return "What was begun is taken back: " + why + afterCancel(e.Cause)
	}).asWarning().alsoForOwner(),
	newNotificationRule("RemediationCancelled", "workers were replaced at once, and something came in between", func(_ *State, e Merged) string {
		return "What was begun is taken back: " + e.Reason + "; next: it is decided again"
	}),
	newNotificationRule("EtcdAlarm", "[etcd has an alarm](#etcd-has-an-alarm)", func(s *State, e EtcdReported) string {
		return e.describeNew(s, v1alpha1.EtcdCorrupt, v1alpha1.EtcdNoSpace)
	}).asWarning().onlyForOwner(),
	newNotificationRule("EtcdDatabaseLarge", "the database of etcd is [near its quota, or fragmented](#the-database-of-etcd)", func(s *State, e EtcdReported) string {
		return e.describeNew(s, v1alpha1.EtcdNearQuota, v1alpha1.EtcdFragmented)
	}).asWarning().onlyForOwner(),
	newNotificationRule("EtcdRecovered", "etcd has no alarm any more, and its database is small enough", func(s *State, e EtcdReported) string {
		return formatIf(s.Etcd != nil && len(s.Etcd.Problems) > 0 && len(e.Problems) == 0, "The problems of etcd are over")
	}).onlyForOwner(),
	newNotificationRule("EtcdDefragmentationWaiting", "a member of etcd should be [defragmented](#defragmentation), and something else comes first", func(_ *State, e DefragmentationWaits) string {
		return "The member of etcd on " + e.Node + " is not defragmented for now: " + e.Reason + "; next: it is defragmented when that has passed"
	}).onlyForOwner(),
	newNotificationRule("EtcdDefragmentationStarted", "a member of etcd is defragmented", func(_ *State, e DefragmentationStarted) string {
		return fmt.Sprintf("The member of etcd on %s is defragmented: %s (%s); next: it answers again, by %s", e.Node, e.Reason, e.Before, e.Until.UTC().Format(time.RFC3339))
	}).onlyForOwner(),
	newNotificationRule("EtcdDefragmented", "the member is defragmented, and answers", func(_ *State, e DefragmentationEnded) string {
		return formatIf(e.Outcome == DefragmentationDone, "The database of etcd on %s was %s, and is %s%s", e.Node, e.Before, e.After, formatIf(e.Next != "", "; next: %s", e.Next))
	}).onlyForOwner(),
	newNotificationRule("EtcdDefragmentationFailed", "the member was not defragmented, or does not answer since", func(_ *State, e DefragmentationEnded) string {
		return fmt.Sprintf("The defragmentation of etcd on %s: %s; next: %s", e.Node, e.Reason, cmp.Or(e.Next, "it is tried again after an hour"))
	}).asWarning().onlyForOwner(),
	newNotificationRule("EtcdAlarmDisarmed", "the alarm NOSPACE is disarmed", func(_ *State, e NoSpaceDisarmed) string {
		return "The alarm NOSPACE is disarmed for " + strings.Join(e.Members, ", ") + ": defragmentations made room; next: find out what fills the database"
	}).onlyForOwner(),
}

const continues = "it continues when that has passed"

// NotificationOf returns the notification of a fact. s is the state before the fact. ok is false if the fact has none.
func NotificationOf(s *State, e Event) (n Notification, ok bool) {
	for _, t := range notificationRules {
		if note := t.note(s, e); note != "" {
			return Notification{Machine: SubjectOf(s, e), Owner: t.owner, Warning: t.warning, Reason: t.reason, Note: note}, true
		}
	}
	return Notification{}, false
}

// SubjectOf returns the machine that a fact is about: the one in the fact, or else the victim of the active remediation. It returns the zero value for a
// fact about no machine.
func SubjectOf(s *State, e Event) Subject {
	switch e := e.(type) {
	case interface{ machine() Subject }:
		return e.machine()
	case Registered, Claimed, ClockSetBack, PolicyMassFailurePassed, MassFailurePassed, Admitted, EtcdReported, DefragmentationWaits, DefragmentationStarted, DefragmentationEnded, NoSpaceDisarmed:
		return Subject{}
	default:
		if s.Active != nil {
			return s.Active.Victim
		}
		return Subject{}
	}
}

// hasMark reports whether the machine already has a mark with the same state.
func (s *State) hasMark(e MachineMarked) bool {
	u := s.Unhealthy[e.Machine.UID]
	return u != nil && u.Mark != nil && u.Mark.State == e.State
}

func describeMark(e MachineMarked) string {
	return fmt.Sprintf("%s since %s, says %s", e.Reason, e.Since.UTC().Format(time.RFC3339), e.Source)
}

// describe returns a decision in words: "Wait by rule hold: held by an operator".
func (d Decision) describe() string {
	return fmt.Sprintf("%s by rule %s: %s", d.Words(), d.Rule, d.Reason)
}

// describeDecision returns the decision about a machine in parentheses, or "" if it does not act.
func (s *State) describeDecision(m Subject) string {
	u := s.Unhealthy[m.UID]
	if u == nil || !u.Decision.acts() {
		return ""
	}
	return " (" + u.Decision.describe() + ")"
}

func (o Owner) title() string { return o.Kind + " " + o.Name }

// victimDeleting reports whether the victim of the active remediation is being deleted or gone.
func (s *State) victimDeleting() bool {
	return s.Active != nil && (s.Active.Step == Deleting || s.Active.Step == Settling)
}

func (s *State) afterReady() string {
	if s.victimDeleting() || s.Active != nil && s.Active.Request.Method == OwnerRemediation {
		return "it becomes ready"
	}
	return s.Owner.Name + " deletes this machine when it is ready"
}

func (s *State) replacement() string {
	if s.Active == nil {
		return "another machine"
	}
	return cmp.Or(s.Active.Replacement.Name, "another machine")
}

// afterCancel returns what happens after a cancellation.
func afterCancel(c Cause) string {
	switch c {
	case Aborted:
		return "; next: nothing is begun before an operator allows it"
	case TimedOut, Reverted:
		return "; next: it is decided again after the cooldown"
	default:
		return ""
	}
}
