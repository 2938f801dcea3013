package remediator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// Describe returns a description of an event of an owner of machines. before is the state before
// the event. If before is empty, the description omits what only earlier events contain, such as
// the name of the owner.
func Describe(before *State, e Event) view.Line {
	line := definitionOf(e).describe(before, e)
	line.About = SubjectOf(before, e).Name
	return line
}

// notice defines a kind of Kubernetes event, which is a row of the table in docs/remediation.md.
type notice struct {
	reason, when string
	to           audience
	applies      func(before *State, e Event) bool
}

// audience defines which objects get a Kubernetes event, and whether the event is a warning.
type audience int

const (
	toMachine audience = 0
	toOwner   audience = 1 << iota // the machine's owner gets the event too
	onlyOwner
	warning
)

// says returns a function that describes every event of a type with the same line.
func says[E Event](line view.Line) func(*State, E) view.Line {
	return func(*State, E) view.Line { return line }
}

func notify(reason string, to audience, when string) notice {
	return notice{reason, when, to, func(*State, Event) bool { return true }}
}

func notifyIf[E Event](reason string, to audience, when string, applies func(s *State, e E) bool) notice {
	return notice{reason, when, to, func(s *State, e Event) bool {
		typed, ok := e.(E)
		return ok && applies(s, typed)
	}}
}

var definitions = []definition{
	define("registered", 1, noLinks, func(_ *State, e Registered) view.Line {
		return view.Line{Detail: fmt.Sprintf("%s %s/%s of cluster %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Owner.Cluster)}
	}),
	define("claimed", 1, noLinks, func(_ *State, e Claimed) view.Line { return view.Line{Detail: "by " + e.Holder} }),
	define("admitted", 1, noLinks, func(_ *State, e Admitted) view.Line {
		return view.Line{Detail: fmt.Sprintf("%s %s/%s, by %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Holder)}
	}),
	define("machine-marked", 1, links{is: linkMark, follows: from(linkMark)}, func(_ *State, e MachineMarked) view.Line {
		next := map[markState]string{Failing: "the machine counts as unhealthy when the timeout of the check has passed", Unhealthy: nextDecide}[e.State]
		reason := e.Reason
		if e.Source == FromNotice {
			reason = "about to stop: " + reason
			if e.State == Failing {
				next = "scute replaces the machine from the notice's lead time on"
			}
		}
		return view.Line{Name: "marked", Detail: fmt.Sprintf("%s since %s: %s (%s)", e.State, utc(e.Since), reason, e.Source), Next: next}
	},
		notifyIf("NoticeSeen", toMachine, "the machine is healthy, and a [notice](#machines-that-are-about-to-stop) says that it stops",
			func(s *State, e MachineMarked) bool { return e.Source == FromNotice && !s.hasMark(e) }),
		notifyIf("HealthCheckFailing", warning, "a check of the machine fails, and its timeout has not passed", func(s *State, e MachineMarked) bool {
			return e.State == Failing && !s.hasMark(e)
		}),
		notifyIf("MachineUnhealthy", warning, "the machine is unhealthy", func(s *State, e MachineMarked) bool {
			return e.State == Unhealthy && !s.hasMark(e)
		})),
	define("machine-mark-cleared", 1, links{is: linkCleared, follows: from(linkMark)}, func(_ *State, e MachineMarkCleared) view.Line {
		return view.Line{Name: "mark cleared", Detail: e.Reason}
	},
		notifyIf("MachineRecovered", toMachine, "the machine is healthy again, or its notice is gone", func(_ *State, e MachineMarkCleared) bool {
			return e.Cause == Recovered || e.Cause == ""
		}),
		notify("MachineMarkCleared", toMachine, "the machine is gone, or no policy selects it any more")),
	define("decided", 1, links{is: linkDecided, follows: from(linkMark, linkOrder, linkEscalationEnd)}, func(_ *State, e Decided) view.Line {
		d := e.Decision
		detail := fmt.Sprintf("%s by rule %s: %s", d.Words(), d.Rule, d.Reason)
		if e.Evidence.DryRun && d.acts() {
			detail = "dry run, nothing is changed: it would be " + detail
		}
		next := map[Verdict]string{
			Wait: "scute decides again when the cause has passed", Freeze: "scute continues when the cause has passed", CannotRemediate: "replace the machine by hand",
		}
		return view.Line{Detail: detail, Observed: e.Evidence.Text(), Next: cmp.Or(d.Next, next[d.Verdict])}
	},
		notifyIf("RemediationDryRun", toMachine, "the policy is a dry run, and would otherwise act", func(_ *State, e Decided) bool {
			return e.Evidence.DryRun && e.Decision.acts()
		}),
		notifyIf("RemediationHeld", toMachine, "the policy holds the machine", func(_ *State, e Decided) bool { return e.Decision.Rule == rulePolicyHold }),
		notifyIf("RemediationWaiting", toMachine, "something else comes first; the rule says what", func(_ *State, e Decided) bool {
			return e.Decision.Verdict == Wait && e.Decision.Rule != ruleHold && e.Decision.Rule != "aborted" // an operator's request has its own notice
		}),
		notifyIf("RemediationFrozen", warning|toOwner, "acting would be dangerous", func(_ *State, e Decided) bool { return e.Decision.Verdict == Freeze }),
		notifyIf("CannotRemediate", warning|toOwner, "no method is safe, or all attempts failed; a human is needed", func(_ *State, e Decided) bool {
			return e.Decision.Verdict == CannotRemediate
		})),
	define("hold-set", 1, links{is: linkOrder}, func(_ *State, e HoldSet) view.Line {
		return view.Line{
			Name: "held", Detail: "an operator holds the machine" + formatUntil(e.Until) + formatReason(e.Reason),
			Next: "nothing starts for the machine before it is released" + formatIf(!e.Until.IsZero(), " or the hold ends"),
		}
	}, notify("RemediationHeld", toMachine, "an operator holds the machine")),
	define("hold-released", 1, links{is: linkOrder},
		says[HoldReleased](view.Line{Name: "released", Detail: "an operator released the machine", Next: "scute decides again"}),
		notify("RemediationReleased", toMachine, "an operator releases the machine")),
	define("abort-requested", 1, links{is: linkOrder}, says[AbortRequested](view.Line{
		Detail: "an operator aborted the remediation", Next: "scute cancels the replacement, and nothing starts for the machine before it is released",
	}), notify("RemediationAborted", toMachine, "an operator aborts the remediation")),
	define("escalation-started", 1, links{is: linkEscalationStart, follows: from(linkDecided)}, func(_ *State, e EscalationStarted) view.Line {
		return view.Line{
			Name: "escalated", Detail: "escalation step " + e.Step + " started",
			Next: "scute tries the next step or replaces the machine, if it does not recover in time",
		}
	}, notify("EscalationStarted", toMachine, "a step of the policy's escalation is tried")),
	define("escalation-ended", 1, links{is: linkEscalationEnd, follows: from(linkEscalationStart)}, func(_ *State, e EscalationEnded) view.Line {
		ended := map[stepOutcome]string{stepFailed: "failed: " + e.Reason, stepTimedOut: "did not make the machine healthy in time", stepCancelled: "was cancelled", stepRecovered: "ended: the machine recovered"}
		line := view.Line{Detail: "escalation step " + e.Step + " " + cmp.Or(ended[e.Outcome], "did not make the machine healthy")}
		if e.Outcome != stepCancelled && e.Outcome != stepRecovered {
			line.Next = "scute tries the next step, or replaces the machine"
		}
		return line
	}, notify("EscalationEnded", warning, "the step did not make the machine healthy in time, or failed")),
	define("surge-requested", 1, startLinks, func(s *State, e SurgeRequested) view.Line {
		how := Decision{Verdict: e.Method, Relaxed: e.Relaxed}.Words()
		switch {
		case e.From != e.To:
			how += fmt.Sprintf(", replicas %d to %d in the %s", e.From, e.To, e.Where)
		case e.Trigger != "":
			how += " by " + string(e.Trigger)
		}
		return view.Line{
			Detail: s.ownerTitle() + " is asked for another machine: " + how + "; " + s.attempt(e.Machine, e.Baseline, e.Attempt),
			Next:   s.ownerName() + " creates the new machine, and deletes this one when the new one is ready",
		}
	}, notify("ReplacementRequested", toOwner, "the owner is asked for a replacement")),
	define("handed-over", 1, startLinks, func(s *State, e HandedOver) view.Line {
		return view.Line{
			Detail: s.ownerTitle() + " is asked to remediate the machine; " + s.attempt(e.Machine, e.Baseline, e.Attempt),
			Next:   s.ownerName() + " deletes this machine first, then creates another",
		}
	}, notify("OwnerRemediationRequested", toOwner, "the owner is asked to remediate, deleting first")),
	define("replacement-observed", 1, stepLinks, func(_ *State, e ReplacementObserved) view.Line {
		if e.Extra {
			return view.Line{Name: "extra machine", Detail: "machine " + e.Replacement.Name + " exists, one more than was requested; it is surplus"}
		}
		return view.Line{Name: "replacement made", Detail: "replacement " + e.Replacement.Name + " exists, and is not ready", Next: "it becomes ready"}
	}, notifyIf("ReplacementCreated", toMachine, "the replacement exists", func(_ *State, e ReplacementObserved) bool { return !e.Extra })),
	define("continued", 1, startLinks, says[Continued](view.Line{
		Name: "continues", Detail: "the following events are about this machine, one of several remediations in progress",
	})),
	define("surge-relaxed", 1, stepLinks, func(_ *State, e SurgeRelaxed) view.Line {
		return view.Line{Detail: "scute relaxes the preflight checks of the owner: " + e.Reason}
	}),
	define("scale-raised", 1, stepLinks, says[ScaleRaised](view.Line{Detail: "the owner has the requested replicas"})),
	define("scale-restored", 1, stepLinks, says[ScaleRestored](view.Line{Detail: "the owner has its original replicas again"})),
	define("replacement-ready", 1, stepLinks, func(s *State, e ReplacementReady) view.Line {
		return view.Line{
			Detail: "replacement " + e.Replacement.Name + " is ready",
			Next:   formatIf(s.Active != nil && !s.victimDeleting(), "%s deletes this machine", s.ownerName()),
		}
	}, notify("ReplacementReady", toMachine, "the replacement has joined, and is ready")),
	define("victim-deleting", 1, stepLinks, says[VictimDeleting](view.Line{
		Name: "being deleted", Detail: "the machine is being deleted", Next: "scute waits until it is gone and its replacement is ready",
	}), notify("MachineDeleting", toMachine, "the machine is being deleted")),
	define("drain-skipped", 1, links{follows: from(linkStep)}, func(_ *State, e DrainSkipped) view.Line {
		return view.Line{
			Detail: "the drain of the Node has taken more than " + view.NormalizeDuration(e.After) + ", since " + utc(e.Since) + ": the deletion continues without it",
			Next:   "the machine's volumes are detached",
		}
	}, notify("DrainSkipped", warning, "the Node was not drained within `removal.drainTimeout`")),
	define("volume-detach-skipped", 1, links{follows: from(linkStep)}, func(_ *State, e VolumeDetachSkipped) view.Line {
		return view.Line{
			Name:   "volumes skipped",
			Detail: "the machine's volumes were not detached within " + view.NormalizeDuration(e.After) + ", since " + utc(e.Since) + ": the deletion continues",
			Next:   "the machine's infrastructure is deleted",
		}
	}, notify("VolumeDetachSkipped", warning, "volumes were not detached within `removal.volumeDetachTimeout`")),
	define("victim-gone", 1, stepLinks, func(s *State, _ VictimGone) view.Line {
		return view.Line{Name: "gone", Detail: "the machine is deleted", Next: formatIf(s.Active != nil && !s.Active.Ready, "scute waits until its replacement is ready")}
	}, notifyIf("MachineDeleted", toMachine, "the machine is gone, and its replacement is not ready yet", func(s *State, _ VictimGone) bool {
		return s.Active == nil || !s.Active.Ready
	})),
	define("surge-consumed", 1, endLinks, func(_ *State, e SurgeConsumed) view.Line {
		return view.Line{Detail: e.Reason, Next: "scute decides again"}
	}, notify("ReplacementConsumed", warning, "another client deleted a machine, and the new machine replaced the deleted one")),
	define("cancel-started", 1, stepLinks, func(_ *State, e CancelStarted) view.Line {
		return view.Line{Detail: "scute cancels the replacement (" + string(e.Cause) + ")" + formatReason(e.Reason)}
	}, notify("RemediationCancelling", warning, "scute cancels the replacement")),
	define("victim-spared", 1, stepLinks, says[VictimSpared](view.Line{
		Name: "spared", Detail: "all other requests are undone: scute may remove the delete annotation of the machine",
	})),
	define("frozen", 1, links{is: linkFrozen, follows: from(linkStep)}, func(_ *State, e Frozen) view.Line {
		next := cmp.Or(e.Next, "the remediation continues when the cause has passed")
		return view.Line{Detail: "frozen by rule " + e.Rule + ": " + e.Reason, Next: next}
	}, notify("RemediationFrozen", warning|toOwner, "the replacement must not continue for now")),
	define("thawed", 1, links{follows: from(linkFrozen)},
		says[Thawed](view.Line{Detail: "the cause of the freeze has passed", Next: "the remediation continues"}),
		notify("RemediationResumed", toMachine, "the cause of the freeze has passed")),
	define("transient-failure", 1, links{follows: from(linkStep)}, func(_ *State, e TransientFailure) view.Line {
		return view.Line{Detail: e.Message, Next: "scute retries"}
	}, notify("ActionFailed", warning, "a write failed, and is retried")),
	define("succeeded", 1, endLinks, func(s *State, e Succeeded) view.Line {
		detail := "the machine is replaced"
		if s.Active != nil && s.Active.Replacement.Name != "" {
			detail += " by " + s.Active.Replacement.Name
		}
		return view.Line{Detail: view.Join(detail, e.Note)}
	}, notify("RemediationSucceeded", toOwner, "the machine is replaced")),
	define("cancelled", 1, endLinks, func(s *State, e Cancelled) view.Line {
		line := view.Line{Detail: "the replacement is cancelled (" + string(e.Cause) + ")"}
		if s.Active != nil {
			line.Detail += formatReason(s.Active.Reason)
		}
		switch e.Cause {
		case Aborted:
			line.Next = "nothing starts for the machine before an operator releases it"
		case TimedOut, Reverted:
			line.Next = "scute decides again after the cooldown"
		}
		return line
	},
		notifyIf("RemediationCancelled", toOwner, "the replacement was cancelled, because the machine is healthy", func(_ *State, e Cancelled) bool {
			return e.Cause == Recovered
		}),
		notify("RemediationCancelled", warning|toOwner, "the replacement was cancelled")),
	define("merged", 1, endLinks, func(_ *State, e Merged) view.Line {
		detail := "the replacement is cancelled, and undone with that of another machine"
		return view.Line{Detail: detail + formatReason(e.Reason), Next: "scute decides again"}
	}, notify("RemediationCancelled", toMachine, "several workers were being replaced, and their owner changed meanwhile")),
	define("clock-set-back", 1, noLinks, func(_ *State, e ClockSetBack) view.Line {
		return view.Line{Detail: "by " + view.NormalizeDuration(e.By)}
	}),
	define("policy-mass-failure-passed", 1, links{is: linkPassed}, says[PolicyMassFailurePassed](view.Line{
		Name: "mass failure passed", Detail: "of the policy",
	})),
	define("mass-failure-passed", 1, links{is: linkPassed}, func(_ *State, e MassFailurePassed) view.Line {
		return view.Line{Detail: cmp.Or(e.Domain, "of the fleet")}
	}),
	define("etcd-reported", 1, noLinks, func(_ *State, e EtcdReported) view.Line { return view.Line{Detail: e.text(), Next: e.advice()} },
		notifyIf("EtcdAlarm", warning|onlyOwner, "[etcd has an alarm](#etcd-has-an-alarm)", func(s *State, e EtcdReported) bool {
			return e.adds(s.Etcd, v1alpha1.EtcdCorrupt, v1alpha1.EtcdNoSpace)
		}),
		notifyIf("EtcdDatabaseLarge", warning|onlyOwner, "the database of etcd is [near its quota, or fragmented](#the-database-of-etcd)",
			func(s *State, e EtcdReported) bool {
				return e.adds(s.Etcd, v1alpha1.EtcdNearQuota, v1alpha1.EtcdFragmented)
			}),
		notifyIf("EtcdRecovered", onlyOwner, "etcd has no alarm any more, and its database is small enough", func(s *State, e EtcdReported) bool {
			return len(s.Etcd.Problems) > 0 && len(e.Problems) == 0
		})),
	define("defragmentation-waits", 1, noLinks, func(_ *State, e DefragmentationWaits) view.Line {
		return view.Line{Detail: "the defragmentation of etcd on " + e.Node + " waits: " + e.Reason, Next: "scute defragments it when the cause has passed"}
	}, notify("EtcdDefragmentationWaiting", onlyOwner, "a member of etcd should be [defragmented](#defragmentation), and something else comes first")),
	define("defragmentation-started", 1, links{is: linkDefragmentationStart}, func(_ *State, e DefragmentationStarted) view.Line {
		return view.Line{
			Name: "defragmentation", Detail: fmt.Sprintf("scute defragments etcd on %s (%s): %s", e.Node, e.Before, e.Reason),
			Next: "the member answers again by " + utc(e.Until),
		}
	}, notify("EtcdDefragmentationStarted", onlyOwner, "scute defragments a member of etcd")),
	define("defragmentation-ended", 1, links{is: linkDefragmentationEnd, follows: from(linkDefragmentationStart)}, func(_ *State, e DefragmentationEnded) view.Line {
		detail, next := "etcd on "+e.Node+" is defragmented", e.Next
		if e.Outcome != DefragmentationDone {
			detail, next = fmt.Sprintf("the defragmentation of etcd on %s failed (%s)", e.Node, e.Outcome), cmp.Or(e.Next, "scute retries after an hour")
		}
		detail += formatReason(e.Reason) + "; before: " + e.Before.String() + formatIf(e.After.Size > 0, "; after: %s", e.After)
		return view.Line{Name: "defragmented", Detail: detail, Next: next}
	},
		notifyIf("EtcdDefragmented", onlyOwner, "the member is defragmented, and answers", func(_ *State, e DefragmentationEnded) bool {
			return e.Outcome == DefragmentationDone
		}),
		notify("EtcdDefragmentationFailed", warning|onlyOwner, "the member was not defragmented, or has not answered since")),
	define("no-space-disarmed", 1, links{follows: from(linkDefragmentationEnd)}, func(_ *State, e NoSpaceDisarmed) view.Line {
		return view.Line{
			Name: "alarm disarmed", Detail: "the alarm NOSPACE on " + view.First(e.Members) + " is disarmed: defragmentation has freed space",
			Next: "find out what fills the database",
		}
	}, notify("EtcdAlarmDisarmed", onlyOwner, "the alarm NOSPACE is disarmed")),
}

const nextDecide = "scute decides how to replace it"

// Notification is a Kubernetes event about an event in the log.
type Notification struct {
	// Machine is the subject of the event. It is the zero value if the event is about the owner alone.
	Machine Subject
	// Owner means that the machine's owner gets the event too.
	Owner   bool
	Warning bool
	Reason  string
	// Note describes what happened and what happens next.
	Note string
}

// NotificationOf returns the Kubernetes event about an event in the log. s is the state before it.
// ok is false if there is none.
func NotificationOf(s *State, e Event) (n Notification, ok bool) {
	d := definitionOf(e)
	found := find(d.notices, func(n *notice) bool { return n.applies(s, e) })
	if found == nil {
		return Notification{}, false
	}
	line := d.describe(s, e)
	return Notification{
		Machine: SubjectOf(s, e), Owner: found.to&(toOwner|onlyOwner) != 0, Warning: found.to&warning != 0,
		Reason: found.reason, Note: view.Line{Detail: line.Detail, Next: line.Next}.Text(),
	}, true
}

// SubjectOf returns the machine that an event is about: the machine in the event, or else the victim
// of the active remediation. It returns the zero value for an event about no machine.
func SubjectOf(s *State, e Event) Subject {
	switch e := e.(type) {
	case interface{ machine() Subject }:
		return e.machine()
	case Registered, Claimed, ClockSetBack, PolicyMassFailurePassed, MassFailurePassed, Admitted,
		EtcdReported, DefragmentationWaits, DefragmentationStarted, DefragmentationEnded, NoSpaceDisarmed:
		return Subject{}
	default:
		if s.Active != nil {
			return s.Active.Victim
		}
		return Subject{}
	}
}

// Text returns the evidence of a decision in words.
func (s Evidence) Text() string {
	parts := []string{fmt.Sprintf("%d of %s ready", s.Ready, view.Count(s.Machines, "machine"))}
	if int(s.Replicas) != s.Machines {
		parts[0] += fmt.Sprintf(" (%d requested)", s.Replicas)
	}
	switch {
	case s.External:
		parts = append(parts, "etcd is external")
	case s.EtcdError != "":
		parts = append(parts, "etcd unknown: "+s.EtcdError)
	case s.Voters > 0:
		parts = append(parts, fmt.Sprintf("%d of %s answer", s.Voters-len(s.Silent), view.Count(s.Voters, "voter")))
	}
	if s.Learners > 0 {
		parts = append(parts, view.Count(s.Learners, "learner"))
	}
	if s.Leader != "" {
		parts = append(parts, "leader "+s.Leader)
	}
	for _, l := range []struct {
		what  string
		names []string
	}{{"silent", s.Silent}, {"reached", s.Fallbacks}, {"broken", s.Broken}, {"being deleted", s.Deleting}} {
		if len(l.names) > 0 {
			parts = append(parts, l.what+" "+view.First(l.names))
		}
	}
	if s.DryRun {
		parts = append(parts, "dry run")
	}
	return strings.Join(parts, ", ")
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *State) hasMark(e MachineMarked) bool {
	return s.record(e.Machine.UID).Mark.State == e.State
}

// attempt describes the attempt that starts for a machine, with the decision if it is known.
// baseline contains the machines that exist.
func (s *State) attempt(m Subject, baseline []Subject, attempt int) string {
	text := fmt.Sprintf("%s before; attempt %d", view.Count(len(baseline), "machine"), attempt)
	if u := s.record(m.UID); u.Decision.acts() {
		text += "; rule " + u.Decision.Rule + ": " + u.Decision.Reason
	}
	return text
}

func (s *State) ownerName() string { return cmp.Or(s.Owner.Name, "the owner") }

func (s *State) ownerTitle() string { return strings.TrimSpace(s.Owner.Kind + " " + s.ownerName()) }

// victimDeleting reports whether the victim of the active remediation is being deleted or gone.
func (s *State) victimDeleting() bool {
	return s.Active != nil && (s.Active.Step == deleting || s.Active.Step == settling)
}
