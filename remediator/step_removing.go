package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/internal/timespan"
)

// stepRemoving and its transitions.
//
//nolint:gochecknoglobals // a table
var (
	stepRemoving = step{
		name:   Removing,
		means:  "The new machine is ready. The owner must delete the unhealthy machine.",
		awaits: remediation.awaitsRemoval,
		writes: asking,
		exits:  slices.Concat(there, these(replacementSeen, another), replicas, reasons, these(blocked, notRemoved, taken)),
	}

	blocked = expires("the owner cannot delete the machine for `timeouts.scaleUp`, as components of another one are not well", TimedOut, func(r remediation) time.Time {
		return dueIf(r.stuck(), r.allowed(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, timespan.Text(r.facts.Policy.Timeouts.ScaleUp), r.obstacle())
	})
	notRemoved = expires("the owner does not delete the machine within `timeouts.removal`", TimedOut, func(r remediation) time.Time {
		return dueIf(r.facts.Policy.Timeouts.Removal > 0, r.allowed(r.facts.Policy.Timeouts.Removal))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, timespan.Text(r.facts.Policy.Timeouts.Removal), r.obstacle())
	})
)

func (r remediation) awaitsRemoval() string {
	return fmt.Sprintf("%s deletes %s", r.facts.Owner.Name, r.Victim.Name)
}
