package mover

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
)

// Limits that keep an event far below the log's limit of 1 MiB for a message, with names of any length: a reference has at most 0.5 KiB, an object of
// the plan 2 KiB, a finding 2 KiB.
const (
	perEvent      = 250
	findingsNamed = 250
	leftNamed     = 500
	clusterNames  = 512 << 10 // bytes
)

// parts splits a map into parts that fit into one event each, sorted by reference.
func parts[V any](objects map[object.Ref]V) iter.Seq[map[object.Ref]V] {
	return func(yield func(map[object.Ref]V) bool) {
		for refs := range slices.Chunk(slices.SortedFunc(maps.Keys(objects), object.Compare), perEvent) {
			part := make(map[object.Ref]V, len(refs))
			for _, r := range refs {
				part[r] = objects[r]
			}
			if !yield(part) {
				return
			}
		}
	}
}

// boundFindings returns the first findings, errors before warnings, and one finding with the number of the others.
func boundFindings(list []Finding) []Finding {
	kept := slices.Clone(list)
	slices.SortStableFunc(kept, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	if more := len(kept) - findingsNamed; more > 0 {
		kept = append(kept[:findingsNamed:findingsNamed], Finding{
			Severity: kept[findingsNamed].Severity, Field: "spec",
			Message: fmt.Sprintf("%d more findings are not listed", more), Remedy: "see to those listed first",
		})
	}
	for i := range kept {
		kept[i].Message = redact.Message(kept[i].Message)
	}
	return kept
}

func cleanWaits(list []Wait) []Wait {
	list = slices.Clone(list)
	for i := range list {
		list[i].Why = redact.Message(list[i].Why)
	}
	return list
}
