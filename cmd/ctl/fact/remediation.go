package fact

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scute.dev/cmd/ctl/term"
	"scute.dev/internal/plural"
	"scute.dev/internal/timespan"
	"scute.dev/remediator"
)

// remediation describes an event of an owner's machines.
func remediation(e remediator.Event) Fact {
	switch e := e.(type) {
	case remediator.Registered:
		return Fact{Detail: fmt.Sprintf("%s %s/%s of cluster %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Owner.Cluster)}
	case remediator.Claimed:
		return Fact{Detail: "by " + e.Holder}
	case remediator.MachineMarked:
		return Fact{What: "marked", Task: e.Machine.Name, Detail: fmt.Sprintf("%s since %s: %s (%s)", e.State, term.Second(e.Since), e.Reason, e.Source)}
	case remediator.MachineMarkCleared:
		return Fact{What: "mark cleared", Task: e.Machine.Name, Detail: e.Why}
	case remediator.Decided:
		return Fact{Task: e.Machine.Name, Detail: join(Verdict(e.Decision)+" by rule "+e.Decision.Rule+": "+e.Decision.Reason, e.Decision.Next, Seen(e.Evidence))}
	case remediator.HoldSet:
		return Fact{What: "held", Task: e.Machine.Name, Detail: join(until(e.Until), e.Reason)}
	case remediator.HoldReleased:
		return Fact{What: "released", Task: e.Machine.Name}
	case remediator.AbortRequested:
		return Fact{Task: e.Machine.Name}
	case remediator.EscalationStarted:
		return Fact{What: "escalated", Task: e.Machine.Name, Detail: "step " + e.Step}
	case remediator.EscalationEnded:
		return Fact{Task: e.Machine.Name, Detail: "step " + e.Step + " " + stepOutcome(e)}
	case remediator.SurgeRequested:
		return Fact{Task: e.Machine.Name, Detail: surge(e)}
	case remediator.HandedOver:
		return Fact{Task: e.Machine.Name, Detail: fmt.Sprintf("to its owner, which deletes it first; %s before; attempt %d", plural.Of(len(e.Baseline), "machine"), e.Attempt)}
	default:
		return remediationStep(e)
	}
}

// remediationStep describes an event of the remediation in progress.
func remediationStep(e remediator.Event) Fact {
	switch e := e.(type) {
	case remediator.ReplacementObserved:
		if e.Extra {
			return Fact{What: "extra machine", Task: e.Replacement.Name, Detail: "one more than was asked for: it is not wanted"}
		}
		return Fact{What: "replacement made", Task: e.Replacement.Name}
	case remediator.Continued:
		return Fact{What: "continues", Task: e.Machine.Name, Detail: "what follows is about this one of the remediations in progress"}
	case remediator.Merged:
		return Fact{Task: e.Machine.Name, Detail: e.Why + ": what was asked for it is taken back with the remediation of another machine"}
	case remediator.ScaleRaised:
		return Fact{Detail: "the owner's replicas are what was asked for"}
	case remediator.VictimSpared:
		return Fact{What: "spared", Detail: "all that must come first is taken back: the machine may lose its mark"}
	case remediator.ScaleRestored:
		return Fact{Detail: "the owner's replicas are what they were"}
	case remediator.ReplacementReady:
		return Fact{Task: e.Replacement.Name}
	case remediator.VictimDeleting:
		return Fact{What: "being deleted", Detail: "its owner has begun to delete the machine"}
	case remediator.SurgeRelaxed:
		return Fact{Detail: e.Reason + ": its preflight is relaxed"}
	case remediator.DrainSkipped:
		return Fact{Detail: fmt.Sprintf("it has lasted more than %s, since %s: the deletion continues without it", timespan.Stored(e.After), term.Second(e.Since))}
	case remediator.VolumeDetachSkipped:
		return Fact{What: "volumes skipped", Detail: fmt.Sprintf("they were not detached within %s, since %s: the deletion continues", timespan.Stored(e.After), term.Second(e.Since))}
	case remediator.VictimGone:
		return Fact{What: "gone", Detail: "the machine is no more"}
	case remediator.SurgeConsumed:
		return Fact{Detail: e.Why}
	case remediator.CancelStarted:
		return Fact{Detail: because(string(e.Cause), e.Reason)}
	case remediator.Frozen:
		return Fact{Detail: join(e.Reason, e.Next)}
	case remediator.Thawed:
		return Fact{Detail: "the cause has passed"}
	case remediator.Succeeded:
		return Fact{Detail: e.Note}
	case remediator.Cancelled:
		return Fact{Detail: string(e.Cause)}
	case remediator.TransientFailure:
		return Fact{Detail: e.Message}
	case remediator.ClockSetBack:
		return Fact{Detail: "by " + timespan.Stored(e.By)}
	case remediator.StormPassed:
		return Fact{What: "mass failure passed"}
	case remediator.Admitted:
		return Fact{Detail: fmt.Sprintf("%s %s/%s, by %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Holder)}
	case remediator.EtcdReported:
		return Fact{Detail: etcd(e)}
	case remediator.DefragmentationWaits:
		return Fact{Task: e.Node, Detail: e.Reason}
	case remediator.DefragmentationStarted:
		return Fact{What: "defragmentation", Task: e.Node, Detail: fmt.Sprintf("%s: %s; it ends by %s", e.Before, e.Reason, term.Second(e.Until))}
	case remediator.DefragmentationEnded:
		return Fact{What: "defragmented", Task: e.Node, Detail: join(defragmented(e), e.Next)}
	case remediator.NoSpaceDisarmed:
		return Fact{What: "alarm disarmed", Detail: "NOSPACE of " + few(e.Members)}
	case remediator.MassFailurePassed:
		return Fact{Detail: cmp.Or(e.Domain, "of the fleet")}
	default:
		return Fact{}
	}
}

// Verdict returns the verdict of a decision in the words of a status.
func Verdict(d remediator.Decision) string {
	if d.Relaxed {
		return string(d.Verdict) + " (relaxed)"
	}
	return string(d.Verdict)
}

// Seen returns the evidence of a decision as a line.
func Seen(s remediator.Evidence) string {
	parts := []string{fmt.Sprintf("seen: %d of %s ready", s.Ready, plural.Of(s.Machines, "machine"))}
	if int(s.Replicas) != s.Machines {
		parts[0] += fmt.Sprintf(" (%d wanted)", s.Replicas)
	}
	switch {
	case s.External:
		parts = append(parts, "etcd is external")
	case s.EtcdError != "":
		parts = append(parts, "etcd not asked: "+s.EtcdError)
	case s.Voters > 0:
		parts = append(parts, fmt.Sprintf("%d of %s answer", s.Voters-len(s.Silent), plural.Of(s.Voters, "voter")))
	}
	if s.Learners > 0 {
		parts = append(parts, plural.Of(s.Learners, "learner"))
	}
	for _, l := range []struct {
		what  string
		names []string
	}{{"led by", nonEmpty(s.Leader)}, {"silent", s.Silent}, {"asked", s.Ways}, {"broken", s.Broken}, {"being deleted", s.Deleting}} {
		if len(l.names) > 0 {
			parts = append(parts, l.what+" "+few(l.names))
		}
	}
	if s.DryRun {
		parts = append(parts, "dry run")
	}
	return strings.Join(parts, ", ")
}

func nonEmpty(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// etcd returns the report of the etcd members as a line.
func etcd(e remediator.EtcdReported) string {
	var parts []string
	for _, p := range e.Problems {
		parts = append(parts, fmt.Sprintf("%s of %s", p.Kind, few(p.Members)))
	}
	if len(parts) == 0 {
		parts = append(parts, "no problem")
	}
	if e.Leader != "" {
		parts = append(parts, "led by "+e.Leader)
	}
	if len(e.Learners) > 0 {
		parts = append(parts, "learners "+few(e.Learners))
	}
	for _, d := range e.Databases {
		parts = append(parts, d.Node+" "+d.String())
	}
	return strings.Join(parts, ", ")
}

func defragmented(e remediator.DefragmentationEnded) string {
	out := fmt.Sprintf("%s: %s before", e.Outcome, e.Before)
	if e.After.Size > 0 {
		out += ", " + e.After.String() + " after"
	}
	if e.Reason != "" {
		out += ": " + e.Reason
	}
	return out
}

func surge(e remediator.SurgeRequested) string {
	what := string(e.Method)
	if e.Relaxed {
		what += " (relaxed)"
	}
	switch {
	case e.From != e.To:
		what += fmt.Sprintf(", replicas %d to %d at the %s", e.From, e.To, e.Where)
	case e.Trigger != "":
		what += " by " + string(e.Trigger)
	}
	return fmt.Sprintf("%s; %s before; attempt %d", what, plural.Of(len(e.Baseline), "machine"), e.Attempt)
}

func until(t time.Time) string {
	if t.IsZero() {
		return "until it is released"
	}
	return "until " + term.Second(t)
}

// stepOutcome returns how an escalation step ended.
func stepOutcome(e remediator.EscalationEnded) string {
	switch e.Outcome {
	case remediator.StepFailed:
		return "failed: " + e.Reason
	case remediator.StepTimedOut:
		return "did not make it healthy in time"
	case remediator.StepCancelled:
		return "was cancelled"
	case remediator.StepRecovered:
		return "ended as the machine had recovered"
	default:
		return "did not make it healthy"
	}
}
