package fact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/internal/plural"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// move describes an event of a move. An empty What means the name in the event's type.
func move(e mover.Event) Fact {
	switch e := e.(type) {
	case mover.Requested:
		return Fact{What: "move requested", Detail: requested(e.Spec)}
	case mover.LogLost:
		return Fact{Detail: "the move had begun, and this log does not know how far it came"}
	case mover.TraceMissing:
		return Fact{What: "no trace found", Detail: "neither cluster shows a trace of the move: it begins again"}
	case mover.Resolved:
		return Fact{Detail: join(string(e.Way), e.Reason)}
	case mover.Rebuilt:
		return Fact{Detail: "read from both clusters, to go " + string(e.Way)}
	case mover.TargetAbandoned:
		return Fact{Detail: e.Reason}
	case mover.Abandoned:
		return Fact{Detail: e.Why}
	case mover.CreateStarted:
		return Fact{What: "creation started", Detail: "objects are sent to the target from here on"}
	case mover.Claimed:
		return Fact{Detail: "by " + e.Holder}
	case mover.PreflightPassed:
		return Fact{Detail: join(plural.Of(len(e.Clusters), "cluster")+": "+strings.Join(e.Clusters, ", "), findings(e.Warnings))}
	case mover.Refused:
		return Fact{Detail: findings(e.Findings)}
	case mover.BaselineTaken:
		return Fact{Objects: slices.Collect(maps.Keys(e.Objects))}
	case mover.PauseIntended:
		return Fact{Detail: roots(e.Roots)}
	case mover.Paused:
		return Fact{Detail: "every root is paused"}
	case mover.Acknowledged:
		return Fact{What: "pause acknowledged", Detail: signals(e.Objects), Objects: slices.Collect(maps.Keys(e.Objects))}
	case mover.Waiting:
		return Fact{Detail: waits(e.For, e.Total)}
	case mover.AllAcknowledged:
		return Fact{Detail: "every object is at rest"}
	case mover.PlanDrafted:
		return Fact{Detail: plural.Of(len(e.Items), "object")}
	case mover.Planned:
		return Fact{Detail: join("plan "+short(e.Hash), left(e.Left))}
	case mover.Created:
		return Fact{What: "objects created", Detail: adopted(e.Adopted), Objects: slices.Collect(maps.Keys(e.Objects)), Place: "on the target"}
	case mover.AllCreated:
		return Fact{Detail: "the whole plan is on the target"}
	case mover.Verified:
		return Fact{Detail: "the target holds the plan: from here only forward"}
	case mover.Deleted:
		return Fact{What: "objects deleted", Objects: e.Objects, Place: "at the source"}
	case mover.PausesRestored:
		return Fact{Detail: "on the target, as they were found"}
	case mover.Awoke:
		return Fact{What: "objects awake", Objects: e.Objects, Place: "on the target"}
	case mover.Succeeded:
		if e.Total > 0 {
			return Fact{What: "succeeded", Detail: "not awake yet: " + waits(e.Asleep, e.Total)}
		}
		return Fact{What: "succeeded"}
	case mover.AbortRequested:
		return Fact{Detail: e.Reason}
	case mover.AbortRefused:
		return Fact{Detail: e.Why}
	case mover.TransientFailure:
		if e.Stranded {
			return Fact{What: "stranded", Detail: join(e.Message, e.Next)}
		}
		if !e.Until.IsZero() {
			return Fact{What: "waiting for a permission", Detail: join(e.Message, "until "+e.Until.Format(time.RFC3339))}
		}
		return Fact{What: "setback", Detail: e.Message}
	case mover.Failed:
		return Fact{Detail: join(e.Message, e.Next)}
	case mover.RollbackStarted:
		return Fact{Detail: e.Reason}
	case mover.Removed:
		return Fact{What: "copies removed", Objects: e.Objects, Place: "from the target"}
	case mover.TargetCleared:
		return Fact{Detail: "no copy of the move is left there"}
	case mover.RolledBack:
		return Fact{Detail: "the source is as it was found"}
	default:
		return Fact{}
	}
}

func requested(s mover.Spec) string {
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
	if len(list) == 1 {
		return "1 was there before"
	}
	return fmt.Sprintf("%d were there before", len(list))
}

// signals returns how many objects acknowledged by each signal.
func signals(objects map[object.Ref]pause.Signal) string {
	how := make(map[pause.Signal]int)
	for _, signal := range objects {
		how[signal]++
	}
	var parts []string
	for _, signal := range slices.Sorted(maps.Keys(how)) {
		words := strings.ReplaceAll(string(signal), "-", " ")
		if signal == pause.ByCondition {
			words = "by condition"
		}
		parts = append(parts, fmt.Sprintf("%d %s", how[signal], words))
	}
	return strings.Join(parts, ", ")
}

func roots(list []pause.Root) string {
	all := make([]object.Ref, len(list))
	held := 0
	for i, root := range list {
		all[i] = root.Ref
		if root.Found {
			held++
		}
	}
	if held == 0 {
		return "of " + refs(all)
	}
	return fmt.Sprintf("of %s; %d paused already", refs(all), held)
}

func findings(list []mover.Finding) string {
	if len(list) == 0 {
		return ""
	}
	first := list[0].Field + ": " + list[0].Message
	if len(list) == 1 {
		return first
	}
	return fmt.Sprintf("%s: %s, and %d more", plural.Of(len(list), "finding"), first, len(list)-1)
}

func waits(list []mover.Wait, total int) string {
	if len(list) == 0 {
		return "for nothing any more"
	}
	out := "for " + list[0].Ref.Short() + ": " + list[0].Why
	if total > 1 {
		out += fmt.Sprintf("; and %d more", total-1)
	}
	return out
}

func left(list []mover.Wait) string {
	if len(list) == 0 {
		return ""
	}
	if len(list) == 1 {
		return "1 object stays behind"
	}
	return plural.Of(len(list), "object") + " stay behind"
}
