package mover

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Verdict represents how a move whose progress the log does not contain can safely continue.
type Verdict string

// The verdicts.
const (
	// NothingStarted means that neither cluster has a trace of the move.
	NothingStarted Verdict = "NothingStarted"
	// CanRollBack means that the source is complete, so every copy on the target can be removed.
	CanRollBack Verdict = "CanRollBack"
	// MustRollForward means that some objects exist only on the target, and none only at the
	// source.
	MustRollForward Verdict = "OnlyForward"
	// NeedsOperator means that neither direction is known to keep every object.
	NeedsOperator Verdict = "AskHuman"
)

// Assessment contains a verdict, and the first of the objects on which it is based.
type Assessment struct {
	Verdict  Verdict
	Evidence []ObjectReason
}

// Assess determines the progress of a move from the two clusters alone, after its event log was
// lost or restored from an older backup. target contains the copies that the move created and has
// not resumed, each with the UID of its original, or "" if the original stays at the source. id and
// log identify the move in its annotations.
func Assess(source []Member, target map[object.Ref]types.UID, id, log string) Assessment {
	source = slices.DeleteFunc(slices.Clone(source), func(m Member) bool { return m.KeepReason != "" })
	originals := make(map[object.Ref]Member, len(source))
	var only, replaced, uncopied, marked []ObjectReason
	var released bool // a move was deleting an object that has no copy
	var emptying bool // dependants of a root may be deleted already; they cannot be identified
	for _, m := range source {
		originals[m.Ref] = m
		emptying = emptying || m.Emptying
		if _, copied := target[m.Ref]; !copied {
			why := "the target has no copy of it"
			if m.Released {
				released, why = true, "a move has removed its finalizers at the source to delete it, and the target has no copy"
			}
			uncopied = append(uncopied, ObjectReason{Ref: m.Ref, Reason: why})
		}
		if m.MoveID == id && m.MoveLogID == log {
			marked = append(marked, ObjectReason{Ref: m.Ref, Reason: "the move paused it"})
		}
	}
	for ref, origin := range target {
		m, there := originals[ref]
		switch {
		case origin == "": // the original stays at the source
		case !there:
			only = append(only, ObjectReason{Ref: ref, Reason: "it exists only on the target"})
		case m.UID != origin:
			replaced = append(replaced, ObjectReason{Ref: ref, Reason: "the source has another object with the same name"})
		case m.Released:
			only = append(only, ObjectReason{Ref: ref, Reason: "a move has removed its finalizers at the source to delete it"})
		}
	}
	switch {
	case len(replaced) > 0:
		return newAssessment(NeedsOperator, replaced)
	case (len(only) > 0 || emptying) && len(uncopied) > 0, released:
		return newAssessment(NeedsOperator, append(uncopied, only...))
	case len(only) > 0, emptying:
		return newAssessment(MustRollForward, only)
	case len(target) > 0 || len(marked) > 0:
		return newAssessment(CanRollBack, marked)
	case len(source) == 0:
		return Assessment{Verdict: NeedsOperator}
	default:
		return Assessment{Verdict: NothingStarted}
	}
}

func newAssessment(v Verdict, because []ObjectReason) Assessment {
	slices.SortFunc(because, func(a, b ObjectReason) int { return object.Compare(a.Ref, b.Ref) })
	return Assessment{Verdict: v, Evidence: because[:min(len(because), maxWaiting)]}
}

// NoTrace reports whether the source has no selected objects and the target no paused copies. The
// move is then complete, or its objects were removed from both clusters.
func (a Assessment) NoTrace() bool { return a.Verdict == NeedsOperator && len(a.Evidence) == 0 }

const nothingLeftMessage = "the source has no selected objects and the target has no paused copies: the move may be complete already"

const checkTargetAdvice = "check the target: if the clusters work there, delete this Move"

// ResolveCommand returns the command that resolves a stranded move.
func ResolveCommand(s Spec, way Direction) string {
	return fmt.Sprintf("`scutectl decide move %s -n %s --action %s --reason ...`", s.Name, s.Namespace, way)
}

// Explain returns what the verdict means, and what an operator should do.
func (a Assessment) Explain(s Spec) (message, next string) {
	leave := "leave both clusters as they are: do not unpause or delete anything by hand"
	switch a.Verdict {
	case NothingStarted:
		return "neither cluster has a trace of the move", "no action needed: the move starts again"
	case CanRollBack:
		return "the source has every object of the move", leave + ". If there is a newer event log, restore it; otherwise run " +
			ResolveCommand(s, Back) + ", which deletes the copies on the target and resumes the source"
	case MustRollForward:
		return strings.TrimSuffix("the move has started to delete at the source, and the target has every object: "+Summary(a.Evidence), ": "), leave +
			". If there is a newer event log, restore it; otherwise run " + ResolveCommand(s, Forward) + ", which deletes the rest at the source and resumes the target"
	default:
		if a.NoTrace() {
			return nothingLeftMessage, checkTargetAdvice
		}
		message = "neither direction keeps every object: " + Summary(a.Evidence)
		return message, leave + ". See \"When a move is stranded\" in the documentation. To end the Move without changing the target, run " +
			ResolveCommand(s, "abandon") +
			"; a source with deleted objects stays paused"
	}
}
