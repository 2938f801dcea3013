package runner

import "scute.dev/internal/supervise"

// drivenLimit bounds the moves that are driven at once, most of which wait. Each of them holds its plan in memory.
const drivenLimit = 256

// Supervisor keeps every unfinished move of a view driven. It is told of what changes in the view. Places bound the moves
// that work at once.
func (r *Runner) Supervisor(v *Moves) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "move", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Namespace: v.namespace, Limit: drivenLimit, Throttle: r.Throttle, Logger: r.Logger,
	}
}
