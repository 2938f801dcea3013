package runner

import (
	"time"

	"scute.dev/internal/supervise"
)

// drivenLimit bounds the runs that are driven at once, most of which wait. Each of them holds its graph in memory.
const drivenLimit = 256

// Supervisor keeps every unfinished run of a view driven. It is told of what changes in the view. Places bound the runs that
// work at once. A run that waits for an operator, or that this process does not know enough for, is not driven.
func (r *Runner) Supervisor(v *Runs) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "run", IDs: v.IDs, Due: func(id string) (time.Duration, bool) { return v.Due(id, r.Incarnation) }, Drive: r.Drive,
		Namespace: v.namespace, Limit: drivenLimit, Throttle: r.Throttle, Logger: r.Logger,
	}
}
