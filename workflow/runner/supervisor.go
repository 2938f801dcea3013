package runner

import (
	"time"

	"scute.dev/internal/supervise"
)

// drivenLimit bounds the runs that are driven at once, most of which wait. Each of them keeps its graph in memory.
const drivenLimit = 256

// Supervisor returns a supervisor that drives every unfinished run of a view. The caller notifies it of changes in the view. It does not drive a run
// that waits for an operator, or that is stranded in this process. Places bounds the runs that work at once.
func (r *Runner) Supervisor(v *Runs) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "run", IDs: v.IDs, Due: func(id string) (time.Duration, bool) { return v.Due(id, r.Incarnation) }, Drive: r.Drive,
		Namespace: v.namespace, Limit: drivenLimit, Throttle: r.Throttle, Logger: r.Logger,
	}
}
