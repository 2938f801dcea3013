package mover

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Original is an object of a move, as read from the source. Shared objects are not included, because they stay at the source in any case.
type Original struct {
	Ref object.Ref
	UID types.UID
	// Annotated means that the object has the move's annotation: the move has paused it.
	Annotated bool
	// Released means that a move has removed its finalizers in order to delete it.
	Released bool
	// Emptying means that the object is a root, and the move has begun to delete its dependants. Deleted dependants cannot be identified.
	Emptying bool
}

// Copy is an object of the target with the move's annotation: the move created it and has not resumed it.
type Copy struct {
	Ref object.Ref
	// Origin is the UID of the original. It is empty if the original stays at the source.
	Origin types.UID
}

// Verdict is the safe way to continue a move whose progress the log does not contain.
type Verdict string

// The verdicts.
const (
	// NothingStarted means that neither cluster has a trace of the move.
	NothingStarted Verdict = "NothingStarted"
	// CanRollBack means that the source is complete. Every copy on the target can be removed.
	CanRollBack Verdict = "CanRollBack"
	// MustRollForward means that some objects exist only on the target, and the target has all objects that the source still has.
	MustRollForward Verdict = "OnlyForward"
	// NeedsOperator means that neither way keeps every object.
	NeedsOperator Verdict = "AskHuman"
)

// Assessment is a verdict and the first few objects that it is based on.
type Assessment struct {
	Verdict  Verdict
	Evidence []ObjectReason
}

// Assess determines the progress of a move from the two clusters alone, because its event log was lost or restored from an older backup.
func Assess(source []Original, target []Copy) Assessment {
	originals := make(map[object.Ref]Original, len(source))
	copies := make(map[object.Ref]bool, len(target))
	for _, o := range source {
		originals[o.Ref] = o
	}
	var only, replaced, uncopied, marked []ObjectReason
	var released, emptying bool // released: a move deletes an object that has no copy
	for _, c := range target {
		copies[c.Ref] = true
		o, there := originals[c.Ref]
		switch {
		case c.Origin == "": // the original stays at the source
		case !there:
			only = append(only, ObjectReason{Ref: c.Ref, Reason: "it exists only on the target"})
		case o.UID != c.Origin:
			replaced = append(replaced, ObjectReason{Ref: c.Ref, Reason: "the source has another object with the same name"})
		case o.Released:
			only = append(only, ObjectReason{Ref: c.Ref, Reason: "a move has removed its finalizers at the source to delete it"})
		}
	}
	for _, o := range source {
		emptying = emptying || o.Emptying
		if !copies[o.Ref] {
			why := "the target has no copy of it"
			if o.Released {
				released, why = true, "a move has removed its finalizers at the source to delete it, and the target has no copy"
			}
			uncopied = append(uncopied, ObjectReason{Ref: o.Ref, Reason: why})
		}
		if o.Annotated {
			marked = append(marked, ObjectReason{Ref: o.Ref, Reason: "the move paused it"})
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

// NoTrace reports whether neither cluster has an object of the move: the move was complete, or its objects were removed from both clusters.
func (a Assessment) NoTrace() bool { return a.Verdict == NeedsOperator && len(a.Evidence) == 0 }

const nothingLeftMessage = "the source has no selected objects and the target has no paused copies: the move may be complete already"

const checkTargetAdvice = "check the target: if the clusters work there, delete this Move"

// ResolveCommand returns the command with which an operator decides in which direction a stranded move continues.
func ResolveCommand(s Spec, way Direction) string {
	return fmt.Sprintf("`scutectl decide move %s -n %s --action %s --reason ...`", s.Name, s.Namespace, way)
}

// Explain returns what the verdict means, and what a human should do about the Move.
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
