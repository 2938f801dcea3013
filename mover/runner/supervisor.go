package runner

import (
	"context"

	"scute.dev/aggregate"
	"scute.dev/internal/supervise"
)

// Supervisor keeps every unfinished move of a view driven for as long as it runs. Runner.Places bound those that work at
// once.
type Supervisor struct {
	Runner *Runner
	Moves  *Moves
	// Wake is signalled when the view has changed.
	Wake <-chan struct{}
}

// drivenLimit bounds the moves that are driven at once, most of which wait. Each of them holds its plan in memory.
const drivenLimit = 256

// Run drives moves until ctx ends, and returns when all of them have let go.
func (s *Supervisor) Run(ctx context.Context) {
	generic := supervise.Supervisor{
		Noun: "move", Due: s.Moves.Due, Drive: s.Runner.Drive, Namespace: s.Moves.namespace, Lost: aggregate.ErrLost,
		Wake: s.Wake, Limit: drivenLimit, Throttle: s.Runner.throttle, Logger: s.Runner.Logger,
	}
	generic.Run(ctx)
}
