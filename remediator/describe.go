package remediator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scute.dev/internal/plural"
	"scute.dev/internal/timespan"
	"scute.dev/view"
)

// Describe returns an event of an owner of machines in words.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Registered:
		return view.Line{Detail: fmt.Sprintf("%s %s/%s of cluster %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Owner.Cluster)}
	case Claimed:
		return view.Line{Detail: "by " + e.Holder}
	case MachineMarked:
		return view.Line{Name: "marked", About: e.Machine.Name, Detail: fmt.Sprintf("%s since %s: %s (%s)", e.State, view.Second(e.Since), e.Reason, e.Source)}
	case MachineMarkCleared:
		return view.Line{Name: "mark cleared", About: e.Machine.Name, Detail: e.Reason}
	case Decided:
		return view.Line{About: e.Machine.Name, Detail: view.Join(e.Decision.Words()+" by rule "+e.Decision.Rule+": "+e.Decision.Reason, e.Decision.Next, e.Evidence.Text())}
	case HoldSet:
		return view.Line{Name: "held", About: e.Machine.Name, Detail: view.Join(holdUntil(e.Until), e.Reason)}
	case HoldReleased:
		return view.Line{Name: "released", About: e.Machine.Name}
	case AbortRequested:
		return view.Line{About: e.Machine.Name}
	case EscalationStarted:
		return view.Line{Name: "escalated", About: e.Machine.Name, Detail: "step " + e.Step}
	case EscalationEnded:
		return view.Line{About: e.Machine.Name, Detail: "step " + e.Step + " " + stepOutcome(e)}
	case SurgeRequested:
		return view.Line{About: e.Machine.Name, Detail: surge(e)}
	case HandedOver:
		return view.Line{About: e.Machine.Name, Detail: fmt.Sprintf("to its owner, which deletes it first; %s before; attempt %d", plural.Of(len(e.Baseline), "machine"), e.Attempt)}
	default:
		return remediationStep(e)
	}
}

// remediationStep describes an event of the remediation in progress.
func remediationStep(e Event) view.Line {
	switch e := e.(type) {
	case ReplacementObserved:
		if e.Extra {
			return view.Line{Name: "extra machine", About: e.Replacement.Name, Detail: "one more than was asked for: it is not wanted"}
		}
		return view.Line{Name: "replacement made", About: e.Replacement.Name}
	case Continued:
		return view.Line{Name: "continues", About: e.Machine.Name, Detail: "what follows is about this one of the remediations in progress"}
	case Merged:
		return view.Line{About: e.Machine.Name, Detail: e.Reason + ": what was asked for it is taken back with the remediation of another machine"}
	case ScaleRaised:
		return view.Line{Detail: "the owner's replicas are what was asked for"}
	case VictimSpared:
		return view.Line{Name: "spared", Detail: "all that must come first is taken back: the machine may lose its mark"}
	case ScaleRestored:
		return view.Line{Detail: "the owner's replicas are what they were"}
	case ReplacementReady:
		return view.Line{About: e.Replacement.Name}
	case VictimDeleting:
		return view.Line{Name: "being deleted", Detail: "its owner has begun to delete the machine"}
	case SurgeRelaxed:
		return view.Line{Detail: e.Reason + ": its preflight is relaxed"}
	case DrainSkipped:
		return view.Line{Detail: fmt.Sprintf("it has lasted more than %s, since %s: the deletion continues without it", timespan.Normalize(e.After), view.Second(e.Since))}
	case VolumeDetachSkipped:
		return view.Line{Name: "volumes skipped", Detail: fmt.Sprintf("they were not detached within %s, since %s: the deletion continues", timespan.Normalize(e.After), view.Second(e.Since))}
	case VictimGone:
		return view.Line{Name: "gone", Detail: "the machine is no more"}
	case SurgeConsumed:
		return view.Line{Detail: e.Reason}
	case CancelStarted:
		return view.Line{Detail: string(e.Cause) + formatReason(e.Reason)}
	case Frozen:
		return view.Line{Detail: view.Join(e.Reason, e.Next)}
	case Thawed:
		return view.Line{Detail: "the cause has passed"}
	case Succeeded:
		return view.Line{Detail: e.Note}
	case Cancelled:
		return view.Line{Detail: string(e.Cause)}
	case TransientFailure:
		return view.Line{Detail: e.Message}
	case ClockSetBack:
		return view.Line{Detail: "by " + timespan.Normalize(e.By)}
	case PolicyMassFailurePassed:
		return view.Line{Name: "mass failure passed"}
	case Admitted:
		return view.Line{Detail: fmt.Sprintf("%s %s/%s, by %s", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Holder)}
	case EtcdReported:
		return view.Line{Detail: etcd(e)}
	case DefragmentationWaits:
		return view.Line{About: e.Node, Detail: e.Reason}
	case DefragmentationStarted:
		return view.Line{Name: "defragmentation", About: e.Node, Detail: fmt.Sprintf("%s: %s; it ends by %s", e.Before, e.Reason, view.Second(e.Until))}
	case DefragmentationEnded:
		return view.Line{Name: "defragmented", About: e.Node, Detail: view.Join(defragmentation(e), e.Next)}
	case NoSpaceDisarmed:
		return view.Line{Name: "alarm disarmed", Detail: "NOSPACE of " + view.First(e.Members)}
	case MassFailurePassed:
		return view.Line{Detail: cmp.Or(e.Domain, "of the fleet")}
	default:
		return view.Line{}
	}
}

// Text returns the evidence of a decision as a line.
func (s Evidence) Text() string {
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
	}{{"led by", nonEmpty(s.Leader)}, {"silent", s.Silent}, {"asked", s.Fallbacks}, {"broken", s.Broken}, {"being deleted", s.Deleting}} {
		if len(l.names) > 0 {
			parts = append(parts, l.what+" "+view.First(l.names))
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
func etcd(e EtcdReported) string {
	var parts []string
	for _, p := range e.Problems {
		parts = append(parts, fmt.Sprintf("%s of %s", p.Kind, view.First(p.Members)))
	}
	if len(parts) == 0 {
		parts = append(parts, "no problem")
	}
	if e.Leader != "" {
		parts = append(parts, "led by "+e.Leader)
	}
	if len(e.Learners) > 0 {
		parts = append(parts, "learners "+view.First(e.Learners))
	}
	for _, d := range e.Databases {
		parts = append(parts, d.Node+" "+d.String())
	}
	return strings.Join(parts, ", ")
}

// defragmentation returns how a defragmentation ended.
func defragmentation(e DefragmentationEnded) string {
	out := fmt.Sprintf("%s: %s before", e.Outcome, e.Before)
	if e.After.Size > 0 {
		out += ", " + e.After.String() + " after"
	}
	if e.Reason != "" {
		out += ": " + e.Reason
	}
	return out
}

func surge(e SurgeRequested) string {
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

// holdUntil returns the end of a hold.
func holdUntil(t time.Time) string {
	if t.IsZero() {
		return "until it is released"
	}
	return "until " + view.Second(t)
}

// stepOutcome returns how an escalation step ended.
func stepOutcome(e EscalationEnded) string {
	switch e.Outcome {
	case StepFailed:
		return "failed: " + e.Reason
	case StepTimedOut:
		return "did not make it healthy in time"
	case StepCancelled:
		return "was cancelled"
	case StepRecovered:
		return "ended as the machine had recovered"
	default:
		return "did not make it healthy"
	}
}
