package request

import (
	"maps"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/view"
)

// Describe returns a description of an event of a Pause.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Requested:
		return view.Line{Name: "pause requested", Detail: view.Join(selection(e.Spec), e.Spec.Reason), Clusters: e.Spec.Clusters}
	case Claimed:
		return view.Line{Detail: "by " + e.Holder}
	case Intended:
		line := view.Line{Name: "pause intended", Detail: pause.DescribeRoots(e.Roots)}
		for _, root := range e.Roots {
			line.Clusters = append(line.Clusters, root.Ref.Name)
		}
		return line
	case Paused:
		return view.Line{Objects: e.Roots}
	case Acknowledged:
		how := make(map[object.Ref]pause.Signal, len(e.Objects))
		for ref, ack := range e.Objects {
			how[ref] = ack.How
		}
		return view.Line{Name: "pause acknowledged", Detail: pause.DescribeSignals(how), Objects: slices.SortedFunc(maps.Keys(how), object.Compare)}
	case Withdrawn:
		return view.Line{Name: "acknowledgement withdrawn", Objects: slices.SortedFunc(maps.Keys(e.Objects), object.Compare), Detail: reasons(e.Objects)}
	case Waiting:
		return view.Line{Detail: pause.DescribeWaits(e.Objects, e.Total)}
	case AllAcknowledged:
		return view.Line{Detail: "by " + view.Count(e.Objects, "object")}
	case TimedOut:
		return view.Line{Detail: pause.DescribeWaits(e.Objects, e.Total)}
	case Dropped:
		return view.Line{Name: "clusters deleted", Objects: e.Roots}
	case TransientFailure:
		if e.Message == "" {
			return view.Line{Name: "transient failure resolved"}
		}
		return view.Line{Detail: view.Join(e.Message, e.Next)}
	case ReleaseRequested:
		return view.Line{Detail: e.Reason}
	case Restored:
		return view.Line{Name: "pauses restored", Detail: "as recorded"}
	case Released:
		if e.Total > 0 {
			return view.Line{Name: "released", Detail: "no longer waiting " + pause.DescribeWaits(e.StillPaused, e.Total)}
		}
		return view.Line{Name: "released", Detail: "every object has resumed, or is paused for another reason"}
	default:
		return view.Line{}
	}
}

func selection(s Spec) string {
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

func reasons(objects map[object.Ref]string) string {
	list := slices.Compact(slices.Sorted(maps.Values(objects)))
	return strings.Join(list[:min(len(list), view.Named)], "; ")
}
