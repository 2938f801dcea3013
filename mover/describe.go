package mover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/view"
)

// Describe returns a description of an event of a move.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Requested:
		return view.Line{Name: "move requested", Detail: requested(e.Spec), Clusters: e.Spec.Clusters, AllClusters: e.Spec.All}
	case LogLost:
		return view.Line{Detail: "the move had started, but this log does not contain its progress"}
	case TraceMissing:
		return view.Line{Name: "no trace found", Detail: "neither cluster has a trace of the move: the move starts again"}
	case Resolved:
		return view.Line{Detail: view.Join(string(e.Direction), e.Reason)}
	case Rebuilt:
		return view.Line{Detail: "read from both clusters; direction: " + string(e.Direction)}
	case TargetAbandoned:
		return view.Line{Detail: e.Reason}
	case Abandoned:
		return view.Line{Detail: e.Reason}
	case CreateStarted:
		return view.Line{Name: "creation started", Detail: "objects are created on the target from now on"}
	case Claimed:
		return view.Line{Detail: "by " + e.Holder}
	case PreflightPassed:
		detail := view.Join(view.Count(len(e.Clusters), "cluster")+": "+strings.Join(e.Clusters, ", "), findings(e.Warnings))
		return view.Line{Detail: detail, Clusters: e.Clusters}
	case Refused:
		return view.Line{Detail: findings(e.Findings)}
	case BaselineTaken:
		return view.Line{Objects: slices.Collect(maps.Keys(e.Objects))}
	case PauseIntended:
		return view.Line{Detail: pause.DescribeRoots(e.Roots)}
	case Paused:
		return view.Line{Detail: "every root is paused"}
	case Acknowledged:
		return view.Line{Name: "pause acknowledged", Detail: pause.DescribeSignals(e.Objects), Objects: slices.Collect(maps.Keys(e.Objects))}
	case Waiting:
		return view.Line{Detail: pause.DescribeWaits(e.For, e.Total)}
	case AllAcknowledged:
		return view.Line{Detail: "every object has acknowledged the pause"}
	case PlanDrafted:
		return view.Line{Detail: view.Count(len(e.Items), "object")}
	case Planned:
		return view.Line{Detail: view.Join("plan "+view.Hash(e.Hash), left(e.Excluded))}
	case Created:
		return view.Line{Name: "objects created", Detail: adopted(e.Adopted), Objects: slices.Collect(maps.Keys(e.Objects)), Place: "on the target"}
	case AllCreated:
		return view.Line{Detail: "every planned object is on the target"}
	case Verified:
		return view.Line{Detail: "the target matches the plan: the move can no longer be rolled back"}
	case Deleted:
		return view.Line{Name: "objects deleted", Objects: e.Objects, Place: "at the source"}
	case PausesRestored:
		return view.Line{Detail: "on the target, as recorded at the source"}
	case Resumed:
		return view.Line{Name: "objects resumed", Objects: e.Objects, Place: "on the target"}
	case Succeeded:
		if e.Total > 0 {
			return view.Line{Name: "succeeded", Detail: "no longer waiting " + pause.DescribeWaits(e.StillPaused, e.Total)}
		}
		return view.Line{Name: "succeeded"}
	case AbortRequested:
		return view.Line{Detail: e.Reason}
	case AbortRefused:
		return view.Line{Detail: e.Reason}
	case TransientFailure:
		if e.Stranded {
			return view.Line{Name: "stranded", Detail: view.Join(e.Message, e.Next)}
		}
		return view.Line{Detail: e.Message}
	case Failed:
		return view.Line{Detail: view.Join(e.Message, e.Next)}
	case RollbackStarted:
		return view.Line{Detail: e.Reason}
	case Removed:
		return view.Line{Name: "copies removed", Objects: e.Objects, Place: "from the target"}
	case TargetCleared:
		return view.Line{Detail: "the target has no copies left"}
	case RolledBack:
		return view.Line{Detail: "the source is restored"}
	default:
		return view.Line{}
	}
}

func requested(s Spec) string {
	what := "clusters " + strings.Join(s.Clusters, ", ")
	if s.All {
		what = "all clusters"
	}
	out := fmt.Sprintf("%s of namespace %s, target in Secret %s", what, s.Namespace, s.Target.SecretName)
	if s.DryRun {
		out += ", dry run"
	}
	return out
}

func adopted(list []object.Ref) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d existed already", len(list))
}

func findings(list []Finding) string {
	if len(list) == 0 {
		return ""
	}
	first := list[0].Field + ": " + list[0].Message
	if len(list) == 1 {
		return first
	}
	return fmt.Sprintf("%s: %s, and %d more", view.Count(len(list), "finding"), first, len(list)-1)
}

func left(list []ObjectReason) string {
	if len(list) == 0 {
		return ""
	}
	return view.Count(len(list), "object is not moved", "objects are not moved")
}
