package tracing

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/remediator"
	"scute.dev/workflow"
)

// Fold converts the commits of one log, in order, into spans. It keeps only spans that have not
// ended.
type Fold struct {
	logID        string
	runs         *eventlog.Catalog[workflow.Event]
	moves        *eventlog.Catalog[mover.Event]
	remediations *eventlog.Catalog[remediator.Event]
	open         map[eventlog.Aggregate]*list.Element
	byStart      *list.List // of *openAggregate, sorted by since
}

type openAggregate struct {
	since     uint64 // the sequence of the aggregate's first commit
	converter any    // an eventConverter for the events of the aggregate's kind
}

// New returns a Fold for the log with this ID.
func New(logID string) *Fold {
	return &Fold{
		logID: logID, runs: workflow.NewCatalog(), moves: mover.NewCatalog(), remediations: remediator.NewCatalog(),
		open: map[eventlog.Aggregate]*list.Element{}, byStart: list.New(),
	}
}

// Since returns the sequence from which a new Fold must start to return the same later spans as
// this one: it must apply all commits after that sequence. upTo is the sequence of the last commit
// that was applied.
func (f *Fold) Since(upTo uint64) uint64 {
	if oldest := f.byStart.Front(); oldest != nil {
		return min(upTo, oldest.Value.(*openAggregate).since-1) //nolint:errcheck,forcetypeassert // the list contains only this type
	}
	return upTo
}

// Apply returns the spans that end with a commit. It ignores all events of a commit that it cannot read.
func (f *Fold) Apply(r eventlog.Record) ([]Span, error) {
	switch r.Aggregate.Kind {
	case eventlog.KindRun:
		return applyRecord(f, r, f.runs, func() *run { return &run{} })
	case eventlog.KindMove:
		return applyRecord(f, r, f.moves, func() *move { return &move{} })
	case eventlog.KindRemediation:
		return applyRecord(f, r, f.remediations, func() *owner { return &owner{machines: map[types.UID]*machine{}} })
	default:
		return nil, nil
	}
}

type eventConverter[E any] interface {
	// apply applies an event and returns the spans that end with it.
	apply(e E, ev *stored) []Span
	// finished reports whether no span is open, so that later events do not depend on earlier ones.
	finished() bool
}

func applyRecord[E any, S eventConverter[E]](f *Fold, r eventlog.Record, catalog *eventlog.Catalog[E], begin func() S) (ended []Span, err error) {
	err = catalog.Each(r, func(e E, event eventlog.Event) {
		ev := &stored{Event: event, aggregate: r.Aggregate, seq: r.Seq, logID: f.logID}
		element := f.open[r.Aggregate]
		if element == nil {
			element = f.byStart.PushBack(&openAggregate{since: r.Seq, converter: begin()})
			f.open[r.Aggregate] = element
		}
		s := element.Value.(*openAggregate).converter.(S) //nolint:errcheck,forcetypeassert // an aggregate has one kind, and a kind has one converter
		ended = append(ended, s.apply(e, ev)...)
		if s.finished() {
			f.byStart.Remove(element)
			delete(f.open, r.Aggregate)
		}
	})
	return ended, err
}
