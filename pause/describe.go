package pause

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scute.dev/kube/object"
	"scute.dev/view"
)

// DescribeSignals returns a text with the number of objects that acknowledged by each signal.
func DescribeSignals(objects map[object.Ref]Signal) string {
	how := make(map[Signal]int)
	for _, signal := range objects {
		how[signal]++
	}
	var parts []string
	for _, signal := range slices.Sorted(maps.Keys(how)) {
		words := strings.ReplaceAll(string(signal), "-", " ")
		if signal == ByCondition {
			words = "by condition"
		}
		parts = append(parts, fmt.Sprintf("%d %s", how[signal], words))
	}
	return strings.Join(parts, ", ")
}

// DescribeRoots returns a text with the names of the Clusters of a pause, and the number of
// Clusters that were paused before.
func DescribeRoots(list []Root) string {
	all := make([]object.Ref, len(list))
	held := 0
	for i, root := range list {
		all[i] = root.Ref
		if root.Found {
			held++
		}
	}
	if held == 0 {
		return "of " + view.Objects(all)
	}
	return fmt.Sprintf("of %s; %d already paused", view.Objects(all), held)
}

// DescribeWaits returns a text with the first of total objects that a pause waits for, and the
// reason.
func DescribeWaits(list []PendingObject, total int) string {
	if len(list) == 0 {
		return "for no object"
	}
	out := "for " + list[0].Ref.Short() + ": " + list[0].Reason
	if total > 1 {
		out += fmt.Sprintf("; and %d more", total-1)
	}
	return out
}
