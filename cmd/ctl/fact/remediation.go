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

// remediation says a fact of an owner's machines.
func remediation(e remediator.Event) (f Fact, known bool) {
	switch e := e.(type) {
	case remediator.Registered:
		return Fact{What: "registered", Detail: fmt.Sprintf("%s %s/%s of cluster %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Owner.Cluster)}, true
	case remediator.Claimed:
		return Fact{What: "claimed", Detail: "by " + e.Holder}, true
	case remediator.MachineMarked:
		return Fact{What: "marked", Task: e.Machine.Name, Detail: fmt.Sprintf("%s since %s: %s (%s)", e.State, term.Second(e.Since), e.Reason, e.Source)}, true
	case remediator.MachineMarkCleared:
		return Fact{What: "mark cleared", Task: e.Machine.Name, Detail: e.Why}, true
	case remediator.Decided:
		return Fact{What: "decided", Task: e.Machine.Name, Detail: join(Verdict(e.Decision)+" by rule "+e.Decision.Rule+": "+e.Decision.Reason, e.Decision.Next, Seen(e.Evidence))}, true
	case remediator.HoldSet:
		return Fact{What: "held", Task: e.Machine.Name, Detail: join(until(e.Until), e.Reason)}, true
	case remediator.HoldReleased:
		return Fact{What: "released", Task: e.Machine.Name}, true
	case remediator.AbortRequested:
		return Fact{What: "abort requested", Task: e.Machine.Name}, true
	case remediator.EscalationStarted:
		return Fact{What: "escalated", Task: e.Machine.Name, Detail: "step " + e.Step}, true
	case remediator.EscalationEnded:
		return Fact{What: "escalation ended", Task: e.Machine.Name, Detail: "step " + e.Step + " " + stepOutcome(e)}, true
	case remediator.SurgeRequested:
		return Fact{What: "surge requested", Task: e.Machine.Name, Detail: surge(e)}, true
	case remediator.HandedOver:
		return Fact{What: "handed over", Task: e.Machine.Name, Detail: fmt.Sprintf("to its owner, which deletes it first; %s before; attempt %d", plural.Of(len(e.Baseline), "machine"), e.Attempt)}, true
	default:
		return remediationStep(e)
	}
}

// remediationStep describes an event of the remediation in progress.
func remediationStep(e remediator.Event) (f Fact, known bool) {
	switch e := e.(type) {
	case remediator.ReplacementObserved:
		if e.Extra {
			return Fact{What: "extra machine", Task: e.Replacement.Name, Detail: "one more than was asked for: it is not wanted"}, true
		}
		return Fact{What: "replacement made", Task: e.Replacement.Name}, true
	case remediator.Continued:
		return Fact{What: "continues", Task: e.Machine.Name, Detail: "what follows is about this one of the remediations in progress"}, true
	case remediator.Merged:
		return Fact{What: "merged", Task: e.Machine.Name, Detail: e.Why + ": what was asked for it is taken back with the remediation of another machine"}, true
	case remediator.ScaleRaised:
		return Fact{What: "scale raised", Detail: "the owner's replicas are what was asked for"}, true
	case remediator.VictimSpared:
		return Fact{What: "spared", Detail: "all that must come first is taken back: the machine may lose its mark"}, true
	case remediator.ScaleRestored:
		return Fact{What: "scale restored", Detail: "the owner's replicas are what they were"}, true
	case remediator.ReplacementReady:
		return Fact{What: "replacement ready", Task: e.Replacement.Name}, true
	case remediator.VictimDeleting:
		return Fact{What: "being deleted", Detail: "its owner has begun to delete the machine"}, true
	case remediator.SurgeRelaxed:
		return Fact{What: "surge relaxed", Detail: e.Reason + ": its preflight is relaxed"}, true
	case remediator.DrainSkipped:
		return Fact{What: "drain skipped", Detail: fmt.Sprintf("it has lasted more than %s, since %s: the deletion continues without it", timespan.Stored(e.After), term.Second(e.Since))}, true
	case remediator.VolumeDetachSkipped:
		return Fact{What: "volumes skipped", Detail: fmt.Sprintf("they were not detached within %s, since %s: the deletion continues", timespan.Stored(e.After), term.Second(e.Since))}, true
	case remediator.VictimGone:
		return Fact{What: "gone", Detail: "the machine is no more"}, true
	case remediator.SurgeConsumed:
		return Fact{What: "surge consumed", Detail: e.Why}, true
	case remediator.CancelStarted:
		return Fact{What: "cancel started", Detail: because(string(e.Cause), e.Reason)}, true
	case remediator.Frozen:
		return Fact{What: "frozen", Detail: join(e.Reason, e.Next)}, true
	case remediator.Thawed:
		return Fact{What: "thawed", Detail: "the cause has passed"}, true
	case remediator.Succeeded:
		return Fact{What: "succeeded", Detail: e.Note}, true
	case remediator.Cancelled:
		return Fact{What: "cancelled", Detail: string(e.Cause)}, true
	case remediator.TransientFailure:
		return Fact{What: "setback", Detail: e.Message}, true
	case remediator.ClockSetBack:
		return Fact{What: "clock set back", Detail: "by " + timespan.Stored(e.By)}, true
	case remediator.StormPassed:
		return Fact{What: "mass failure passed"}, true
	case remediator.Admitted:
		return Fact{What: "admitted", Detail: fmt.Sprintf("%s %s/%s, by %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Holder)}, true
	case remediator.EtcdReported:
		return Fact{What: "etcd reported", Detail: etcd(e)}, true
	case remediator.DefragmentationWaits:
		return Fact{What: "defragmentation waits", Task: e.Node, Detail: e.Reason}, true
	case remediator.DefragmentationStarted:
		return Fact{What: "defragmentation", Task: e.Node, Detail: fmt.Sprintf("%s: %s; it ends by %s", e.Before, e.Reason, term.Second(e.Until))}, true
	case remediator.DefragmentationEnded:
		return Fact{What: "defragmented", Task: e.Node, Detail: join(defragmented(e), e.Next)}, true
	case remediator.NoSpaceDisarmed:
		return Fact{What: "alarm disarmed", Detail: "NOSPACE of " + few(e.Members)}, true
	case remediator.MassFailurePassed:
		return Fact{What: "mass failure passed", Detail: cmp.Or(e.Domain, "of the fleet")}, true
	default:
		return Fact{}, false
	}
}

// Verdict of a decision as a status has it.
func Verdict(d remediator.Decision) string {
	if d.Relaxed {
		return string(d.Verdict) + " (relaxed)"
	}
	return string(d.Verdict)
}

// Seen is what a decision was taken on, in a line.
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

// etcd is what its members said, in a line.
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

// stepOutcome says how an escalation step ended.
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
