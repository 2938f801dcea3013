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
	// Marked means that the object has the move's annotation: the move has paused it.
	Marked bool
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
	// OnlyForward means that some objects exist only on the target, and the target has all objects that the source still has.
	OnlyForward Verdict = "OnlyForward"
	// AskHuman means that neither way keeps every object.
	AskHuman Verdict = "AskHuman"
)

// Assessment is a verdict and the first few objects that it is based on.
type Assessment struct {
	Verdict Verdict
	Because []Wait
}

// Assess determines the progress of a move from the two clusters alone, because its event log was lost or restored from an older backup.
func Assess(source []Original, target []Copy) Assessment {
	originals := make(map[object.Ref]Original, len(source))
	copies := make(map[object.Ref]bool, len(target))
	for _, o := range source {
		originals[o.Ref] = o
	}
	var only, replaced, uncopied, marked []Wait
	for _, c := range target {
		copies[c.Ref] = true
		o, there := originals[c.Ref]
		switch {
		case c.Origin == "": // the original stays at the source
		case !there:
			only = append(only, Wait{Ref: c.Ref, Why: "it is on the target alone"})
		case o.UID != c.Origin:
			replaced = append(replaced, Wait{Ref: c.Ref, Why: "the source has another object of its name"})
		case o.Released:
			only = append(only, Wait{Ref: c.Ref, Why: "it was released at the source to be deleted"})
		}
	}
	for _, o := range source {
		switch {
		case o.Released && !copies[o.Ref]:
			uncopied = append(uncopied, Wait{Ref: o.Ref, Why: "it was released at the source to be deleted, and the target has no copy"})
		case !copies[o.Ref]:
			uncopied = append(uncopied, Wait{Ref: o.Ref, Why: "the target has no copy of it"})
		}
		if o.Marked {
			marked = append(marked, Wait{Ref: o.Ref, Why: "the move paused it"})
		}
	}
	released := slices.ContainsFunc(source, func(o Original) bool { return o.Released && !copies[o.Ref] })
	emptying := slices.ContainsFunc(source, func(o Original) bool { return o.Emptying })
	switch {
	case len(replaced) > 0:
		return assessed(AskHuman, replaced)
	case (len(only) > 0 || emptying) && len(uncopied) > 0, released:
		return assessed(AskHuman, append(uncopied, only...))
	case len(only) > 0, emptying:
		return assessed(OnlyForward, only)
	case len(target) > 0 || len(marked) > 0:
		return assessed(CanRollBack, marked)
	case len(source) == 0:
		return Assessment{Verdict: AskHuman}
	default:
		return Assessment{Verdict: NothingStarted}
	}
}

func assessed(v Verdict, because []Wait) Assessment {
	slices.SortFunc(because, func(a, b Wait) int { return object.Compare(a.Ref, b.Ref) })
	return Assessment{Verdict: v, Because: because[:min(len(because), waitingNamed)]}
}

// NoTrace reports whether neither cluster has an object of the move: the move was complete, or its objects were removed from both clusters.
func (a Assessment) NoTrace() bool { return a.Verdict == AskHuman && len(a.Because) == 0 }

const nothingLeft = "the source has nothing that the move selects, and the target no paused copy: it may be complete already"

// lookThere is the advice if neither cluster has an object of the move.
const lookThere = "look at the target: if the clusters work there, delete this Move"

// Command returns the command with which an operator decides in which direction a stranded move continues.
func Command(s Spec, way Way) string {
	return fmt.Sprintf("`scutectl decide move %s -n %s --action %s --reason ...`", s.Name, s.Namespace, way)
}

// Explain returns what the verdict means, and what a human should do about the Move.
func (a Assessment) Explain(s Spec) (message, next string) {
	command := func(way Way) string { return Command(s, way) }
	leave := "leave both clusters as they are: do not unpause or delete anything by hand"
	switch a.Verdict {
	case NothingStarted:
		return "neither cluster shows a trace of the move", "nothing: it begins again"
	case CanRollBack:
		return "the source holds everything that moves", leave + ". Bring the event log back if there is a newer one; else " +
			command(Back) + " removes the copies from the target and resumes the source"
	case OnlyForward:
		return strings.TrimSuffix("the source has begun to be emptied, and the target has everything: "+Summary(a.Because), ": "), leave +
			". Bring the event log back if there is a newer one; else " + command(Forward) + " empties the source and resumes the target"
	default:
		if a.NoTrace() {
			return nothingLeft, lookThere
		}
		message = "no way keeps every object: " + Summary(a.Because)
		return message, leave + ". See \"When a move is stranded\" in the documentation; " + command("abandon") +
			" ends the Move without changing the target, and keeps a source paused that was half emptied"
	}
}
