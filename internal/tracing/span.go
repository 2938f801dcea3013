package tracing

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"scute.dev/eventlog"
)

// Bounds of a span, so that a batch of them fits into a request.
const (
	maxText  = 1000 // bytes of a message
	maxMarks = 100  // marks of one span; later ones are left out
)

// The attributes that are scute's own.
const (
	attributeKind      = attribute.Key("scute.kind")         // run, move or remediation
	attributeAggregate = attribute.Key("scute.aggregate.id") // what `scutectl log` calls it
	attributeEvent     = attribute.Key("scute.event.id")     // the event with which the span begins
	attributeSequence  = attribute.Key("scute.log.sequence") // of the commit that has it
	attributeActor     = attribute.Key("scute.actor")        // who began it
	attributeEndActor  = attribute.Key("scute.end.actor")    // who ended it
	attributeCausation = attribute.Key("scute.causation")    // the event that it follows from
	attributeName      = attribute.Key("scute.name")         // of the run, the move or the owner
	AttributeTask      = attribute.Key("scute.task.name")
	attributeStep      = attribute.Key("scute.step")
	attributeAttempt   = attribute.Key("scute.attempt")
	attributeResult    = attribute.Key("scute.result")
	attributeCause     = attribute.Key("scute.cause")
	attributeMachine   = attribute.Key("scute.machine.name")
	attributeMethod    = attribute.Key("scute.remediation.method")
)

// Span is one span that has ended.
type Span struct {
	Name       string
	TraceID    trace.TraceID
	SpanID     trace.SpanID
	Parent     trace.SpanID // zero for the root of a trace
	Start, End time.Time
	Attributes []attribute.KeyValue
	Marks      []Mark
	// Failed says that what the span is about has failed; Message says why.
	Failed  bool
	Message string
}

// Mark is something that happened at a moment of a span: an event of OpenTelemetry.
type Mark struct {
	Name       string
	At         time.Time
	Attributes []attribute.KeyValue
}

// set adds an attribute, unless it says nothing.
func (s *Span) set(key attribute.Key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, key.String(short(text)))
	}
}

func (s *Span) mark(name string, ev *stored, attributes ...attribute.KeyValue) {
	if len(s.Marks) < maxMarks {
		s.Marks = append(s.Marks, Mark{Name: name, At: ev.Time, Attributes: attributes})
	}
}

// Size is about how many bytes a span has in a request, and not less than its texts.
func (s *Span) Size() int {
	const each = 64 // identifiers, times and keys of the format
	size := 2*each + len(s.Name) + len(s.Message) + sizeOf(s.Attributes)
	for _, m := range s.Marks {
		size += each + len(m.Name) + sizeOf(m.Attributes)
	}
	return size
}

func sizeOf(attributes []attribute.KeyValue) (size int) {
	const each = 16
	for _, a := range attributes {
		size += each + len(a.Key) + len(a.Value.AsString())
	}
	return size
}

// short cuts a message to a sane length.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// TraceID is that of a run or a move; with the UID of a machine as part, that of its remediations.
func TraceID(logID string, of eventlog.Aggregate, part string) trace.TraceID {
	sum := digest("trace", logID, string(of.Kind), of.ID, part)
	return trace.TraceID(sum[:16])
}

// RootID is the identifier of the span of a whole run or move.
func RootID(logID string, of eventlog.Aggregate) trace.SpanID {
	return spanID(logID, of, "root", "", "")
}

// spanID is that of a span which begins with an event. What tells it from others that begin with the same one.
func spanID(logID string, of eventlog.Aggregate, what, name, event string) trace.SpanID {
	sum := digest("span", logID, string(of.Kind), of.ID, what, name, event)
	return trace.SpanID(sum[:8])
}

// digest is a hash of texts that no other texts have.
func digest(texts ...string) [sha256.Size]byte {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	return sha256.Sum256(all)
}

// stored is an event and where it is in the log.
type stored struct {
	eventlog.Event
	of    eventlog.Aggregate
	seq   uint64
	logID string
}

// span begins a span with an event.
func (ev *stored) span(name, what, part string) *Span {
	s := &Span{Name: name, SpanID: spanID(ev.logID, ev.of, what, part, ev.ID), Start: ev.Time}
	s.Attributes = append(s.Attributes, attributeSequence.Int64(int64(ev.seq))) //nolint:gosec // a sequence stays far below 2^63
	s.set(attributeEvent, ev.ID)
	s.set(attributeActor, ev.Actor)
	s.set(attributeCausation, ev.Causation)
	return s
}

// root begins a span of a trace that has no other one above it.
func (ev *stored) root(name, what, part string) *Span {
	s := ev.span(name, what, part)
	s.set(attributeKind, string(ev.of.Kind))
	s.set(attributeAggregate, ev.of.ID)
	if parts := strings.Split(ev.of.ID, "/"); len(parts) > 1 {
		s.Attributes = append(s.Attributes, semconv.K8SNamespaceName(parts[0]))
		s.set(attributeName, parts[1])
	}
	return s
}
