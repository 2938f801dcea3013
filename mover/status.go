package mover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/view"
)

// Maximum lengths of the lists in a status.
const (
	maxStatusWaiting  = 20
	maxStatusFindings = 50
	maxStatusClusters = 1000
)

// Due reports whether a move has work to do: it has not ended, and does not only wait for an
// operator.
func Due(s *State) bool {
	return s.Phase != "" && !s.Finished() && (s.Phase == PhasePending || Next(s) != None || s.Abort)
}

// Status returns the status of a Move, without its ID and log sequence.
func Status(s *State) v1alpha1.MoveStatus {
	out := v1alpha1.MoveStatus{
		Phase: s.Phase, Stranded: s.TransientFailure.Stranded || s.Lost != nil, LogID: s.MarkLog, Counts: s.Counts,
		StartedAt: v1alpha1.StatusTime(s.StartedAt), PhaseSince: v1alpha1.StatusTime(s.PhaseSince), FinishedAt: v1alpha1.StatusTime(s.FinishedAt),
	}
	out.Message, out.Next = Explain(s)
	for _, w := range s.Waiting[:min(len(s.Waiting), maxStatusWaiting)] {
		out.WaitingFor = append(out.WaitingFor, v1alpha1.MoveWaiting{Object: w.Ref.String(), Message: w.Reason})
	}
	for _, f := range s.Findings[:min(len(s.Findings), maxStatusFindings)] {
		out.Findings = append(out.Findings, v1alpha1.MoveFinding{Severity: string(f.Severity), Field: f.Field, Message: f.Message, Remedy: f.Remedy})
	}
	for _, w := range s.Left[:min(len(s.Left), maxStatusFindings)] {
		out.NotMoved = append(out.NotMoved, v1alpha1.MoveWaiting{Object: w.Ref.String(), Message: w.Reason})
	}
	return out
}

// Status returns the status of Move id as a process with this Home sees it. seq is the sequence of
// the move's last commit. unreadable is why this program cannot read one of its events, or nil.
func (h Home) Status(id string, seq uint64, unreadable error, s *State) v1alpha1.MoveStatus {
	status := Status(s)
	status.MoveID, status.Clusters = id, SelectedClusters(s)
	if s.MarkLog == s.Home.Log { // otherwise a client would assume that the sequence is of the lost log
		status.LogSequence = int64(seq) //nolint:gosec // a sequence stays far below 2^63
	}
	if unreadable != nil {
		status.Message, status.Next = "stranded: "+unreadable.Error(), "run the version of scute that wrote this event, or a newer one"
	}
	if message, next := h.Mismatch(s); message != "" {
		status.Stranded, status.Message, status.Next = true, message, next
	}
	return status
}

// SelectedClusters returns the first maxStatusClusters names of the Clusters of a move that selects
// all Clusters; nil if the spec names the Clusters.
func SelectedClusters(s *State) []string {
	if !s.Spec.All {
		return nil
	}
	return slices.Clone(s.Clusters[:min(len(s.Clusters), maxStatusClusters)])
}

// Explain returns a message about the current state or the end of a move, and what an operator can
// do about it.
func Explain(s *State) (message, next string) {
	c := s.Counts
	switch s.Phase {
	case PhasePending:
		return "waiting for a daemon to start the move; there is no timeout", "check that scuted runs: `scutectl doctor`"
	case PhasePreflight:
		message = "running the preflight checks in both clusters; nothing is changed yet"
	case PhasePausing:
		message = "pausing the source"
	case PhaseAwaitingAcks:
		message = fmt.Sprintf("%d of %d objects have acknowledged the pause; waiting until %s", c.Acknowledged, c.Objects, formatTime(s.ackDeadline()))
		next = s.rollbackAdvice("if the other objects do not acknowledge it, check their controllers, or abort the move")
	case PhasePlanned:
		message = "recording the plan"
	case PhaseCreating:
		message = fmt.Sprintf("creating objects on the target: %d of %d", c.Created, c.Objects)
		switch {
		case s.AllCreated && s.WaitingTotal > 0:
			message = fmt.Sprintf("%s not acknowledged the pause on the target yet; waiting until %s",
				view.Count(s.WaitingTotal, "copy has", "copies have"), formatTime(s.copyAckDeadline()))
			next = s.rollbackAdvice("if they do not acknowledge it, check the controllers of these objects on the target, or abort the move")
		case s.AllCreated:
			message = "verifying the target before anything is deleted"
		}
	case PhaseVerified, PhaseDeleting:
		message = fmt.Sprintf("the target is verified; deleting objects at the source: %d of %d", c.Deleted, c.ToDelete)
	case PhaseResuming:
		message = fmt.Sprintf("the source is empty; resuming the target: %d of %d objects have resumed", c.Resumed, c.ToResume)
		if s.PausesBack {
			message += "; waiting until " + formatTime(s.resumeDeadline())
			next = "no action needed: the move ends then, even if some objects have not resumed; their controllers run on the target"
		}
	case PhaseSucceeded:
		if s.Spec.DryRun {
			return fmt.Sprintf("dry run: %s would move; nothing was changed", countsText(c)), ""
		}
		if s.StillPausedTotal > 0 {
			return fmt.Sprintf("%s moved; %d did not report within %s that they resumed on the target", countsText(c), s.StillPausedTotal,
					view.Duration(time.Duration(s.Spec.Resume))),
				"check that the controllers of these objects run on the target and that their feature gates are on; the move itself is finished"
		}
		return countsText(c) + " moved", ""
	case PhaseRollingBack:
		message = "rolling back: " + s.RollbackCause
	case PhaseRolledBack:
		if s.Abandon {
			return "ended without the target; the source is restored: " + s.RollbackCause,
				"the target may have paused copies with the annotation " + object.MoveAnnotation +
					": if it comes back, remove their finalizers and delete them there; " +
					"do not unpause them, or both clusters reconcile the same machines"
		}
		return "rolled back; the source is restored: " + s.RollbackCause, s.Failure.Next
	case PhaseStranded:
		message = "stranded: the move had started, but the event log does not contain its progress"
		if s.TransientFailure.Message == "" {
			return message, "do not unpause or delete anything by hand; scute is reading both clusters"
		}
	case PhaseFailed:
		switch {
		case s.Finished() && s.Failure.Message == "":
			return s.explainRefusal()
		case s.Finished() && s.Abandon:
			return "abandoned: " + s.Failure.Message, s.Failure.Next
		case s.Finished():
			return "ended: " + s.Failure.Message, s.Failure.Next
		}
		return "failed and left paused: " + s.Failure.Message, strings.TrimSuffix("set spec.abort to roll it back; "+s.Failure.Next, "; ")
	}
	if s.AbortRefused {
		message += "; the abort came too late: the move can no longer be rolled back"
	}
	if s.TransientFailure.Stranded {
		return "stranded: " + s.TransientFailure.Message, s.TransientFailure.Next
	}
	if s.TransientFailure.Message != "" {
		message += "; retrying" + s.retryLimitText() + " after: " + s.TransientFailure.Message
		next = "if the error persists, " + cmp.Or(s.TransientFailure.Next, "fix the cause") + "; then the move continues by itself"
		if !s.Verified() && s.Phase != PhaseRollingBack {
			next += ", or abort it"
		}
	}
	return message, next
}

func (s *State) rollbackAdvice(advice string) string {
	if s.Spec.KeepFailed {
		return "the move fails at that time and is left paused; " + advice
	}
	return "the move is rolled back at that time; " + advice
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *State) retryLimitText() string {
	until := s.retryDeadline(time.Time{})
	if until.IsZero() {
		return " without a limit"
	}
	return " until " + formatTime(until)
}

func (s *State) explainRefusal() (message, next string) {
	errors := slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool { return f.Severity != Error })
	var first Finding
	if len(errors) > 0 {
		first = errors[0]
	}
	message = fmt.Sprintf("refused, nothing was changed: %s: %s", first.Field, first.Message)
	if more := len(errors) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more findings)", more)
	}
	return message, first.Remedy + ", then create another Move"
}

func countsText(c v1alpha1.MoveCounts) string {
	return fmt.Sprintf("%d objects of %s", c.Objects, view.Count(c.Clusters, "cluster"))
}
