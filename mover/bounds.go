package mover

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/internal/redact"
)

// Limits that keep an event far below the log's limit of 1 MiB for a message, with names of any length: a reference has at most 0.5 KiB, an object of
// the plan 2 KiB, a finding 2 KiB.
const (
	maxPerEvent         = 250
	maxFindings         = 250
	maxExcluded         = 500
	maxClusterNameBytes = 512 << 10 // bytes
)

// truncateFindings returns the first findings, errors before warnings, and one finding with the number of the others.
func truncateFindings(list []Finding) []Finding {
	kept := slices.Clone(list)
	slices.SortStableFunc(kept, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	if more := len(kept) - maxFindings; more > 0 {
		kept = append(kept[:maxFindings:maxFindings], Finding{
			Severity: kept[maxFindings].Severity, Field: "spec",
			Message: fmt.Sprintf("%d more findings are not listed", more), Remedy: "fix the listed findings first",
		})
	}
	for i := range kept {
		kept[i].Message = redact.Message(kept[i].Message)
	}
	return kept
}

func redactWaits(list []ObjectReason) []ObjectReason {
	list = slices.Clone(list)
	for i := range list {
		list[i].Reason = redact.Message(list[i].Reason)
	}
	return list
}
