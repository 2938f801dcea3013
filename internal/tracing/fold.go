package tracing

import (
	"container/list"

	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/remediator"
	"scute.dev/workflow"
)

// Fold turns the commits of one log, in their order, into spans. It remembers what has not ended, and nothing else.
type Fold struct {
	logID        string
	runs         *eventlog.Catalog[workflow.Event]
	moves        *eventlog.Catalog[mover.Event]
	remediations *eventlog.Catalog[remediator.Event]
	open         map[eventlog.Aggregate]*list.Element
	byStart      *list.List // of *undertaking, the oldest first
}

// undertaking is what has begun about an aggregate and has not ended.
type undertaking struct {
	since uint64 // the sequence of its first commit
	story
}

// story is what a domain makes of its events.
type story interface {
	// over says that nothing is open: an event that comes later needs nothing of what came before.
	over() bool
}

// New folds the log of an ID.
func New(logID string) *Fold {
	return &Fold{
		logID: logID, runs: workflow.NewCatalog(), moves: mover.NewCatalog(), remediations: remediator.NewCatalog(),
		open: map[eventlog.Aggregate]*list.Element{}, byStart: list.New(),
	}
}

// Since is the sequence after which a fold has to begin to give the same spans from now on; upTo is the commit folded last.
func (f *Fold) Since(upTo uint64) uint64 {
	if oldest := f.byStart.Front(); oldest != nil {
		return min(upTo, oldest.Value.(*undertaking).since-1) //nolint:errcheck,forcetypeassert // the list has nothing else
	}
	return upTo
}

// Open is the number of runs, moves and owners of machines that have begun something and have not ended it.
func (f *Fold) Open() int { return f.byStart.Len() }

// Apply returns the spans that end with a commit. Of a commit that cannot be read, none of the facts counts.
func (f *Fold) Apply(r eventlog.Record) ([]Span, error) {
	switch r.Aggregate.Kind {
	case eventlog.KindRun:
		return apply(f, r, f.runs, newRun)
	case eventlog.KindMove:
		return apply(f, r, f.moves, newMove)
	case eventlog.KindRemediation:
		return apply(f, r, f.remediations, newOwner)
	default:
		return nil, nil
	}
}

// teller is the story of a domain with events E.
type teller[E any] interface {
	story
	// tell takes an event and returns the spans that end with it.
	tell(e E, ev *stored) []Span
}

func apply[E any, S teller[E]](f *Fold, r eventlog.Record, catalog *eventlog.Catalog[E], begin func() S) (ended []Span, err error) {
	err = catalog.Each(r, func(e E, event eventlog.Event) {
		ev := &stored{Event: event, of: r.Aggregate, seq: r.Seq, logID: f.logID}
		element := f.open[r.Aggregate]
		if element == nil {
			element = f.byStart.PushBack(&undertaking{since: r.Seq, story: begin()})
			f.open[r.Aggregate] = element
		}
		s := element.Value.(*undertaking).story.(S) //nolint:errcheck,forcetypeassert // an aggregate has one kind, and a kind one story
		ended = append(ended, s.tell(e, ev)...)
		if s.over() {
			f.byStart.Remove(element)
			delete(f.open, r.Aggregate)
		}
	})
	return ended, err
}
