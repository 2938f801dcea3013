package runner

import (
	"cmp"
	"context"

	"scute.dev/internal/supervise"
)

// Supervisor keeps every unfinished move of a view driven, a bounded number at once, for as long as it runs.
type Supervisor struct {
	Runner *Runner
	Moves  *Moves
	// Wake is signalled when the view has changed.
	Wake <-chan struct{}
	// Limit bounds the moves driven at once. Default 4.
	Limit int
}

const defaultLimit = 4

// Run drives moves until ctx ends, and returns when all of them have let go.
func (s *Supervisor) Run(ctx context.Context) {
	generic := supervise.Supervisor{
		Noun: "move", Due: s.Moves.Due, Drive: s.Runner.Drive, Lost: ErrLost,
		Wake: s.Wake, Limit: cmp.Or(max(s.Limit, 0), defaultLimit), Logger: s.Runner.Logger,
	}
	generic.Run(ctx)
}
