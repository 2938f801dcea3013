package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// HasPending reports whether a remediation is in progress or a machine is marked. If so, the owner
// must be reconciled after a restart of scute even if no watch reports a change.
func HasPending(s *State) bool {
	return s.Active != nil || slices.ContainsFunc(s.unhealthy(), (*UnhealthyMachine).marked)
}

// Progress describes a remediation or an escalation step in progress.
type Progress struct {
	Machine Subject
	// Message describes the progress, and Next what a human can do. They do not mention a freeze by
	// a move, because the move itself reports the Progress.
	Message, Next string
}

// ProgressOf returns the progress of the remediations and escalation steps in progress of an owner.
func ProgressOf(s *State) []Progress {
	var list []Progress
	for _, a := range s.InProgress() {
		_, message, next := a.progress(s.Owner.Name)
		b := Progress{Machine: a.Victim, Message: message, Next: next}
		if a.Frozen != "" && a.Frozen != freezeMove {
			b.Message, b.Next = message+"; it is frozen: "+a.FrozenReason, a.FrozenNext
		}
		list = append(list, b)
	}
	for _, u := range s.unhealthy() {
		if u.EscalationStep != "" && u.marked() && s.activeOf(u.UID) == nil {
			list = append(list, Progress{Machine: u.Subject, Message: "escalation step " + u.EscalationStep + " is tried before a replacement"})
		}
	}
	return list
}

// Status returns the status of a machine's remediation for users. ok is false if the log does not have the machine.
func Status(s *State, uid types.UID) (out v1alpha1.SurgeRemediationStatus, ok bool) {
	u := s.record(uid)
	var machine string
	if a := s.activeOf(uid); a != nil {
		machine, out = a.Victim.Name, s.activeStatus(a, u)
	} else if u.marked() {
		machine, out = u.Name, s.machineStatus(u)
	} else if end := s.lastEnd(uid); end != nil {
		machine, out = end.Victim.Name, endedStatus(end)
	} else {
		return out, false
	}
	if out.FinishedAt == nil {
		out.Aborted = u.Aborted
		if u.Held {
			out.Hold = &v1alpha1.RemediationHold{Until: v1alpha1.StatusTime(u.HoldUntil), Reason: u.HoldReason}
		}
	}
	out.RemediationID = s.Owner.Remediation(machine)
	out.Owner, out.Cluster = s.Owner.Kind+"/"+s.Owner.Name, s.Owner.Cluster
	return out, true
}

func (s *State) lastEnd(uid types.UID) *pastRemediation {
	for i := len(s.History) - 1; i >= 0; i-- {
		if s.History[i].Victim.UID == uid {
			return &s.History[i]
		}
	}
	return nil
}

func (s *State) machineStatus(u *UnhealthyMachine) v1alpha1.SurgeRemediationStatus {
	out := v1alpha1.SurgeRemediationStatus{
		Phase: v1alpha1.RemediationMarked, Reason: u.Mark.Reason, Attempts: u.Attempts, MarkedAt: v1alpha1.StatusTime(u.MarkedAt),
		Message: u.Mark.Reason + "; the timeout of the check has not passed", Policy: u.Evidence.PolicyName,
	}
	switch {
	case u.hasNotice():
		out.Message = "about to stop: " + u.Mark.Reason
	case u.Mark.State != Failing:
		out.Message = "unhealthy: " + u.Mark.Reason
	}
	d := u.Decision
	if d.Verdict == "" || u.Mark.State == Failing {
		return out
	}
	out.Decision, out.Message, out.Next, out.Quorum = d.Words(), s.decisionReason(u), d.Next, quorumStatus(u.Evidence)
	phases := map[Verdict]v1alpha1.RemediationPhase{Freeze: v1alpha1.RemediationFrozen, Escalate: v1alpha1.RemediationEscalating, CannotRemediate: v1alpha1.RemediationFailed}
	if out.Phase = cmp.Or(phases[d.Verdict], v1alpha1.RemediationWaiting); d.Rule == ruleHold || d.Rule == rulePolicyHold {
		out.Phase = v1alpha1.RemediationHeld
	}
	if u.Evidence.DryRun && d.acts() {
		out.Message = "dry run, nothing is changed: it would be " + d.Words() + ": " + d.Reason
	}
	return out
}

// decisionReason returns the reason of the decision about a machine. If the decision is about
// failed attempts, the reason includes why the last attempt failed.
func (s *State) decisionReason(u *UnhealthyMachine) string {
	d, end := u.Decision, s.lastEnd(u.UID)
	if end == nil || end.Outcome != EndCancelled || end.Note == "" {
		return d.Reason
	}
	// A cooldown may follow an attempt at another machine of the owner, or an escalation step.
	meant := d.Rule == ruleCooldown && strings.Contains(d.Reason, utc(end.EndedAt))
	if !meant && d.Rule != ruleAttempts {
		return d.Reason
	}
	return d.Reason + "; the last one was cancelled: " + end.Note
}

// Words returns the verdict of a decision as users see it.
func (d Decision) Words() string {
	if d.Relaxed {
		return string(d.Verdict) + " (relaxed)"
	}
	return string(d.Verdict)
}

func (s *State) activeStatus(a *Active, u *UnhealthyMachine) v1alpha1.SurgeRemediationStatus {
	out := v1alpha1.SurgeRemediationStatus{
		Replacement: a.Replacement.Name, StartedAt: v1alpha1.StatusTime(a.StartedAt), Attempts: a.Request.Attempt, MarkedAt: v1alpha1.StatusTime(u.MarkedAt),
		Decision: Decision{Verdict: a.Request.Method, Relaxed: a.Request.Relaxed}.Words(),
		Reason:   u.Mark.Reason, Quorum: quorumStatus(u.Evidence), Policy: u.Evidence.PolicyName,
	}
	out.Phase, out.Message, out.Next = a.progress(s.Owner.Name)
	if a != s.Active && a.Step == replacing && (s.Active.Step == removing || s.Active.Step == deleting) {
		out.Message = "replacement " + a.Replacement.Name + " exists; machine " + s.Active.Victim.Name + " is deleted first"
	}
	if a.Frozen != "" {
		out.Phase, out.Message, out.Next = v1alpha1.RemediationFrozen, a.FrozenReason, a.FrozenNext
	}
	if s.Failure != "" && a.Frozen != freezeDenied {
		out.Message += "; retrying after: " + s.Failure
		out.Next = cmp.Or(out.Next, "if the error lasts, fix its cause; scute continues by itself")
	}
	return out
}

// progress returns the phase of the remediation, a message about its progress, and what a human can do.
func (a *Active) progress(owner string) (phase v1alpha1.RemediationPhase, message, next string) {
	switch a.Step {
	case requesting:
		if a.Request.Method == OwnerRemediation {
			return v1alpha1.RemediationRemoving, owner + " was asked to remediate: it deletes the machine, and creates another", ""
		}
		return v1alpha1.RemediationSurging, owner + " was asked for one more machine", ""
	case replacing:
		return v1alpha1.RemediationReplacing, "replacement " + a.Replacement.Name + " exists, and is not ready; " + owner + " deletes the machine when it is", ""
	case removing:
		return v1alpha1.RemediationRemoving, "replacement " + a.Replacement.Name + " is ready; " + owner + " must delete the machine", ""
	case deleting:
		return v1alpha1.RemediationRemoving, owner + " is deleting the machine", ""
	case settling:
		return v1alpha1.RemediationReplacing, "the machine is gone; waiting until its replacement is ready", ""
	default: // cancelling, sparing
		phase, message = v1alpha1.RemediationCancelling, "cancelling the replacement: "+a.Reason
		if a.Step == cancelling || a.Replacement.Name == "" {
			return phase, message, owner + " must observe that the request is undone; if this lasts, check that its controller runs"
		}
		return phase, message + "; " + owner + " must delete the new machines (" + a.newNames() + ") until none is surplus",
			"if it is not deleted, find out why, and delete the new machine with the annotation cluster.x-k8s.io/delete-machine by hand"
	}
}

// newNames returns the names of the new machines in the order in which a cancellation deletes them.
func (a *Active) newNames() string {
	var names []string
	for _, m := range append(slices.Clone(a.Extras), a.Replacement) {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", then ")
}

func endedStatus(e *pastRemediation) v1alpha1.SurgeRemediationStatus {
	out := v1alpha1.SurgeRemediationStatus{
		Reason: e.Reason, Replacement: e.Replacement.Name, Attempts: e.Attempts, Policy: e.Evidence.PolicyName, Quorum: quorumStatus(e.Evidence),
		Decision: e.Decision.Words(), MarkedAt: v1alpha1.StatusTime(e.MarkedAt), StartedAt: v1alpha1.StatusTime(e.StartedAt), FinishedAt: v1alpha1.StatusTime(e.EndedAt),
	}
	switch {
	case e.Outcome == EndSucceeded:
		out.Phase = v1alpha1.RemediationSucceeded
		out.Message = strings.TrimSuffix(fmt.Sprintf("replaced by %s; %s", cmp.Or(e.Replacement.Name, "its owner"), e.Note), "; ")
	case e.Outcome == EndRecovered:
		phases := map[cause]v1alpha1.RemediationPhase{Deselected: v1alpha1.RemediationUnselected, MachineGone: v1alpha1.RemediationCancelled}
		out.Phase, out.Message = cmp.Or(phases[e.Cause], v1alpha1.RemediationRecovered), e.Note
	default:
		out.Phase, out.Message = v1alpha1.RemediationCancelled, "cancelled: "+e.Note
	}
	return out
}

// quorumStatus returns the quorum that a decision was based on, or nil if the members of etcd were unknown.
func quorumStatus(seen Evidence) *v1alpha1.QuorumStatus {
	if seen.Voters == 0 && !seen.External {
		return nil
	}
	q := Quorum{Voters: seen.Voters, Answering: seen.Voters - len(seen.Silent)}
	return &v1alpha1.QuorumStatus{Voters: q.Voters, Responding: q.Answering, Tolerates: q.Tolerance(), External: seen.External, Leader: seen.Leader, Learners: seen.Joining}
}

// History returns the ended remediations of an owner that were decided under a policy, the newest
// first. It omits machines that recovered before anything started for them.
func History(s *State, policy string) []v1alpha1.PastRemediation {
	var list []v1alpha1.PastRemediation
	for _, e := range slices.Backward(s.History) {
		started := cmp.Or(e.StartedAt, e.StepSince)
		if started.IsZero() || e.Evidence.PolicyName != policy {
			continue
		}
		status := endedStatus(&e)
		list = append(list, v1alpha1.PastRemediation{
			Machine: e.Victim.Name, Cluster: s.Owner.Cluster, Owner: s.Owner.Kind + "/" + s.Owner.Name, Reason: e.Reason,
			Method: Decision{Verdict: cmp.Or(e.Method, e.Decision.Verdict), Relaxed: e.Relaxed}.Words(), Outcome: status.Phase, Message: status.Message,
			Replacement: e.Replacement.Name, StartedAt: metav1.Time{Time: started}, FinishedAt: metav1.Time{Time: e.EndedAt},
		})
	}
	return list
}
