package fact

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// move says a fact of a move. A fact that has no words here is told by the name of its type.
func move(e mover.Event) Fact {
	switch e := e.(type) {
	case mover.Requested:
		return Fact{"move requested", requested(e.Spec)}
	case mover.Claimed:
		return Fact{"claimed", "by " + e.Holder}
	case mover.PreflightPassed:
		return Fact{"preflight passed", join(plural(len(e.Clusters), "cluster")+": "+strings.Join(e.Clusters, ", "), findings(e.Warnings))}
	case mover.Refused:
		return Fact{"refused", findings(e.Findings)}
	case mover.BaselineTaken:
		return Fact{"baseline taken", "of " + refs(slices.Collect(maps.Keys(e.Objects)))}
	case mover.PauseIntended:
		return Fact{"pause intended", roots(e.Roots)}
	case mover.Paused:
		return Fact{"paused", "the pause stands on every root"}
	case mover.Acknowledged:
		return Fact{"pause acknowledged", acknowledged(e.Objects)}
	case mover.Waiting:
		return Fact{"waiting", waits(e.For, e.Total)}
	case mover.AllAcknowledged:
		return Fact{"all acknowledged", "every object is at rest"}
	case mover.PlanDrafted:
		return Fact{"plan drafted", plural(len(e.Items), "object")}
	case mover.Planned:
		return Fact{"planned", join("plan "+short(e.Hash), left(e.Left))}
	case mover.Created:
		return Fact{"objects created", created(e)}
	case mover.AllCreated:
		return Fact{"all created", "the whole plan is on the target"}
	case mover.Verified:
		return Fact{"verified", "the target holds the plan: from here only forward"}
	case mover.Deleted:
		return Fact{"objects deleted", "at the source: " + refs(e.Objects)}
	case mover.SourceEmptied:
		return Fact{"source emptied", ""}
	case mover.PausesRestored:
		return Fact{"pauses restored", "on the target, as they were found"}
	case mover.Awoke:
		return Fact{"objects awake", "on the target: " + refs(e.Objects)}
	case mover.Succeeded:
		return Fact{"succeeded", ""}
	case mover.AbortRequested:
		return Fact{"abort requested", e.Reason}
	case mover.AbortRefused:
		return Fact{"abort refused", e.Why}
	case mover.Setback:
		return Fact{"setback", e.Message}
	case mover.Failed:
		return Fact{"failed", join(e.Message, e.Next)}
	case mover.RollbackStarted:
		return Fact{"rollback started", e.Reason}
	case mover.Removed:
		return Fact{"copies removed", "from the target: " + refs(e.Objects)}
	case mover.TargetCleared:
		return Fact{"target cleared", "no copy of the move is left there"}
	case mover.RolledBack:
		return Fact{"rolled back", "the source is as it was found"}
	default:
		return Fact{strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "mover.")), ""}
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

func created(e mover.Created) string {
	all := slices.Collect(maps.Keys(e.Objects))
	if len(e.Adopted) == 0 {
		return "on the target: " + refs(all)
	}
	return fmt.Sprintf("on the target: %s; %d were there before", refs(all), len(e.Adopted))
}

func acknowledged(objects map[object.Ref]pause.Signal) string {
	how := make(map[pause.Signal]int)
	for _, signal := range objects {
		how[signal]++
	}
	var parts []string
	for _, signal := range slices.Sorted(maps.Keys(how)) {
		parts = append(parts, fmt.Sprintf("%d %s", how[signal], signal))
	}
	return fmt.Sprintf("%s (%s)", refs(slices.Collect(maps.Keys(objects))), strings.Join(parts, ", "))
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
	return fmt.Sprintf("%s: %s, and %d more", plural(len(list), "finding"), first, len(list)-1)
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
	return plural(len(list), "object") + " stay behind"
}
