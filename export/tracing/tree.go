package tracing

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// tree contains the open spans of one trace, by the names that the domain gives them.
type tree struct {
	traceID trace.TraceID
	spans   map[string]*node
	ended   []Span
}

// node is an open span, with its parent and its children.
type node struct {
	*Span
	above *node
	below map[string]bool
}

// begin begins a span as a child of another one, or without a parent.
func (t *tree) begin(name, parent string, s *Span) {
	if t.spans == nil {
		t.spans = map[string]*node{}
	}
	s.TraceID = t.traceID
	n := &node{Span: s, above: t.spans[parent], below: map[string]bool{}}
	if n.above != nil {
		s.Parent = n.above.SpanID
		n.above.below[name] = true
	}
	t.spans[name] = n
}

func (t *tree) has(name string) bool { return t.spans[name] != nil }

// outcome is the result of a span.
type outcome struct {
	failed                 bool
	result, cause, message string
}

// end ends a span, after its children. It ignores a name that is not open.
func (t *tree) end(name string, o outcome, ev *stored) {
	s := t.spans[name]
	if s == nil {
		return
	}
	for _, below := range slices.Sorted(maps.Keys(s.below)) {
		t.end(below, o, ev)
	}
	delete(t.spans, name)
	if s.above != nil {
		delete(s.above.below, name)
	}
	s.End = ev.Time
	if s.End.Before(s.Start) { // recorded by processes on machines with different clocks
		s.End = s.Start
	}
	s.Failed, s.Message = o.failed, short(o.message)
	s.set(attributeResult, o.result)
	s.set(attributeCause, o.cause)
	s.set(attributeEndActor, ev.Actor)
	t.ended = append(t.ended, *s.Span)
}

func (t *tree) mark(name, what string, ev *stored) {
	if s := t.spans[name]; s != nil {
		s.mark(what, ev, attributeActor.String(short(ev.Actor)))
	}
}

// take returns the spans that have ended since the last call.
func (t *tree) take() []Span {
	ended := t.ended
	t.ended = nil
	return ended
}
