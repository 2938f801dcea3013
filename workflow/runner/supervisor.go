package runner

import (
	"cmp"
	"context"

	"scute.dev/internal/supervise"
)

// Supervisor keeps every unfinished run of a view driven, a bounded number at once, for as long as it runs. A run that
// waits for an operator, or that this process does not know enough for, takes up none of the places.
type Supervisor struct {
	Runner *Runner
	Runs   *Runs
	// Wake is signalled when the view has changed.
	Wake <-chan struct{}
	// Limit bounds the runs driven at once. Default 8.
	Limit int
}

const defaultLimit = 8

// Run drives runs until ctx ends, and returns when all of them have let go.
func (s *Supervisor) Run(ctx context.Context) {
	generic := supervise.Supervisor{
		Noun: "run", Due: func() []string { return s.Runs.Due(s.Runner.Incarnation) }, Drive: s.Runner.Drive, Lost: ErrLost,
		Wake: s.Wake, Limit: cmp.Or(max(s.Limit, 0), defaultLimit), Logger: s.Runner.Logger,
	}
	generic.Run(ctx)
}
