package runner

import (
	"context"

	"scute.dev/aggregate"
	"scute.dev/internal/supervise"
)

// Supervisor keeps every unfinished run of a view driven for as long as it runs. Runner.Places bound those that work at
// once. A run that waits for an operator, or that this process does not know enough for, is not driven.
type Supervisor struct {
	Runner *Runner
	Runs   *Runs
	// Wake is signalled when the view has changed.
	Wake <-chan struct{}
}

// drivenLimit bounds the runs that are driven at once, most of which wait. Each of them holds its graph in memory.
const drivenLimit = 256

// Run drives runs until ctx ends, and returns when all of them have let go.
func (s *Supervisor) Run(ctx context.Context) {
	generic := supervise.Supervisor{
		Noun: "run", Due: func() []string { return s.Runs.Due(s.Runner.Incarnation) }, Drive: s.Runner.Drive, Namespace: s.Runs.namespace,
		Lost: aggregate.ErrLost, Wake: s.Wake, Limit: drivenLimit, Throttle: s.Runner.throttle, Logger: s.Runner.Logger,
	}
	generic.Run(ctx)
}
