package runner

import (
	"context"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// move is one move as the log has it.
type move struct {
	aggregate.Root[mover.Event, *mover.State]

	incarnation string
}

func (r *Runner) move(id, actor string) *move {
	return &move{
		Root: aggregate.Root[mover.Event, *mover.State]{
			Log: r.Log, Catalog: mover.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, Actor: actor, Now: r.Now,
			Links: mover.Links, State: new(mover.State),
		},
		incarnation: r.Incarnation,
	}
}

func (r *Runner) load(ctx context.Context, id, actor string) (*move, error) {
	m := r.move(id, actor)
	return m, m.Read(ctx)
}

// author is how the log calls this process.
func (r *Runner) author() string { return "daemon/" + r.Incarnation }

// refresh reads what others appended, and stops when one of them has claimed the move.
func (m *move) refresh(ctx context.Context) error { return m.Refresh(ctx, m.incarnation) }

// decide records what follows from an outcome. When somebody else wrote first, their events are taken in and the
// decision is taken again.
func (m *move) decide(ctx context.Context, o mover.Outcome) (decided int, err error) {
	err = m.Decide(ctx, m.refresh, func(s *mover.State) ([]mover.Event, error) {
		events, err := mover.Decide(s, o, m.Time())
		decided = len(events)
		return events, err
	})
	return decided, err
}

// interrupted says that the running step is no longer the one that the state calls for.
func (m *move) interrupted(step mover.Step) bool {
	if events, err := mover.Decide(m.State, mover.Tick{}, m.Time()); err != nil || len(events) > 0 {
		return true
	}
	return mover.Next(m.State) != step
}
