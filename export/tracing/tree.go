package tracing

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"scute.dev/view"
)

// tree contains the open spans of one trace. The keys are names that the domain chooses.
type tree struct {
	traceID trace.TraceID
	spans   map[string]*node
	ended   []Span
}

type node struct {
	*Span
	parent   *node
	children map[string]bool
}

func (t *tree) begin(name, parent string, s *Span) {
	if t.spans == nil {
		t.spans = map[string]*node{}
	}
	s.TraceID = t.traceID
	n := &node{Span: s, parent: t.spans[parent], children: map[string]bool{}}
	if n.parent != nil {
		s.Parent = n.parent.SpanID
		n.parent.children[name] = true
	}
	t.spans[name] = n
}

// finished reports whether no span is open, so that later events do not depend on earlier ones.
func (t *tree) finished() bool { return len(t.spans) == 0 }

func (t *tree) has(name string) bool { return t.spans[name] != nil }

type outcome struct {
	failed                 bool
	result, cause, message string
}

// end ends a span, after it has ended the span's children. It does nothing if no span with this
// name is open.
func (t *tree) end(name string, o outcome, ev *stored) {
	s := t.spans[name]
	if s == nil {
		return
	}
	for _, below := range slices.Sorted(maps.Keys(s.children)) {
		t.end(below, o, ev)
	}
	delete(t.spans, name)
	if s.parent != nil {
		delete(s.parent.children, name)
	}
	s.End = ev.Time
	if s.End.Before(s.Start) { // recorded by processes on machines with different clocks
		s.End = s.Start
	}
	s.Failed, s.Message = o.failed, view.Truncate(o.message, maxText)
	s.set(attributeResult, o.result)
	s.set(attributeCause, o.cause)
	s.set(attributeEndActor, ev.Actor)
	t.ended = append(t.ended, *s.Span)
}

// drain returns the spans that have ended since the last call.
func (t *tree) drain() []Span {
	ended := t.ended
	t.ended = nil
	return ended
}
