package tracing

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// tree is the open spans of one trace, by names that the domain gives them.
type tree struct {
	traceID trace.TraceID
	spans   map[string]*node
	ended   []Span
}

// node is an open span, and those below it.
type node struct {
	*Span
	above *node
	below map[string]bool
}

// begin opens a span below another one, or below none.
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

// outcome is how a span ended.
type outcome struct {
	failed                 bool
	result, cause, message string
}

// end closes a span and, before it, what is open below it. A name that is not open is passed over.
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
	if s.End.Before(s.Start) { // decided by processes on machines with different clocks
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

// take returns what has ended since it was called last.
func (t *tree) take() []Span {
	ended := t.ended
	t.ended = nil
	return ended
}
