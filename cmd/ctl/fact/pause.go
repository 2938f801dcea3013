package fact

import (
	"maps"
	"slices"
	"strings"

	"scute.dev/internal/plural"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// pauses describes an event of a Pause. An empty What means the name in the event's type.
func pauses(e request.Event) Fact {
	switch e := e.(type) {
	case request.Requested:
		return Fact{What: "pause requested", Detail: join(selected(e.Spec), e.Spec.Reason)}
	case request.Claimed:
		return Fact{Detail: "by " + e.Holder}
	case request.Intended:
		return Fact{What: "pause intended", Detail: roots(e.Roots)}
	case request.Paused:
		return Fact{Objects: e.Roots}
	case request.Acknowledged:
		how := make(map[object.Ref]pause.Signal, len(e.Objects))
		for ref, ack := range e.Objects {
			how[ref] = ack.How
		}
		return Fact{What: "pause acknowledged", Detail: signals(how), Objects: slices.SortedFunc(maps.Keys(how), object.Compare)}
	case request.Withdrawn:
		return Fact{What: "acknowledgement withdrawn", Objects: slices.SortedFunc(maps.Keys(e.Objects), object.Compare), Detail: reasons(e.Objects)}
	case request.Waiting:
		return Fact{Detail: waits(e.For, e.Total)}
	case request.AllAcknowledged:
		return Fact{Detail: plural.Of(e.Objects, "object") + " at rest"}
	case request.TimedOut:
		return Fact{Detail: waits(e.For, e.Total)}
	case request.Dropped:
		return Fact{What: "clusters gone", Objects: e.Roots}
	case request.TransientFailure:
		if e.Message == "" {
			return Fact{What: "setback over"}
		}
		return Fact{What: "setback", Detail: join(e.Message, e.Next)}
	case request.ReleaseRequested:
		return Fact{Detail: e.Reason}
	case request.Restored:
		return Fact{What: "pauses restored", Detail: "as they were found"}
	case request.Released:
		if e.Total > 0 {
			return Fact{What: "released", Detail: "not awake yet: " + waits(e.Asleep, e.Total)}
		}
		return Fact{What: "released", Detail: "every object is awake, or paused for another cause"}
	default:
		return Fact{}
	}
}

func selected(s request.Spec) string {
	var parts []string
	if len(s.Clusters) > 0 {
		parts = append(parts, "clusters "+strings.Join(s.Clusters, ", "))
	}
	switch {
	case s.Selector != "":
		parts = append(parts, "clusters with labels "+s.Selector)
	case s.BySelector:
		parts = append(parts, "all clusters")
	}
	return strings.Join(parts, " and ") + " of namespace " + s.Namespace
}

// reasons returns the first distinct reasons.
func reasons(objects map[object.Ref]string) string {
	list := slices.Compact(slices.Sorted(maps.Values(objects)))
	return strings.Join(list[:min(len(list), named)], "; ")
}
