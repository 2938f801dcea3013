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
	"scute.dev/view"
)

// maxText limits the bytes of a message, so that a batch of spans fits into one request.
const maxText = 1000

// Attributes that scute defines.
const (
	attributeKind      = attribute.Key("scute.kind")         // run, move or remediation
	attributeAggregate = attribute.Key("scute.aggregate.id") // the ID in `scutectl log`
	attributeEvent     = attribute.Key("scute.event.id")     // the event that begins the span
	attributeSequence  = attribute.Key("scute.log.sequence") // the commit of that event
	attributeActor     = attribute.Key("scute.actor")        // the actor of that event
	attributeEndActor  = attribute.Key("scute.end.actor")    // the actor of the event that ends the span
	attributeCausation = attribute.Key("scute.causation")    // the cause of the event that begins the span
	attributeName      = attribute.Key("scute.name")         // of the run, the move or the owner
	AttributeTask      = attribute.Key("scute.task.name")
	attributeStep      = attribute.Key("scute.step")
	attributeAttempt   = attribute.Key("scute.attempt")
	attributeResult    = attribute.Key("scute.result")
	attributeCause     = attribute.Key("scute.cause")
	attributeMachine   = attribute.Key("scute.machine.name")
	attributeMethod    = attribute.Key("scute.remediation.method")
)

// Span is a span that has ended.
type Span struct {
	Name       string
	TraceID    trace.TraceID
	SpanID     trace.SpanID
	Parent     trace.SpanID // zero for the root of a trace
	Start, End time.Time
	Attributes []attribute.KeyValue
	// Failed is true if the operation that the span represents has failed. Message is the reason.
	Failed  bool
	Message string
}

func (s *Span) set(key attribute.Key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, key.String(view.Truncate(text, maxText)))
	}
}

// Size returns the approximate number of bytes of a span in a request. It is never less than the
// size of the span's texts.
func (s *Span) Size() int {
	const fixed, each = 128, 16 // IDs, times and keys of the format
	size := fixed + len(s.Name) + len(s.Message)
	for _, a := range s.Attributes {
		size += each + len(a.Key) + len(a.Value.AsString())
	}
	return size
}

// TraceID returns the ID of the trace of a run or a move. If part is the UID of a machine, it
// returns the ID of the trace of this machine's remediations.
func TraceID(logID string, of eventlog.Aggregate, part string) trace.TraceID {
	sum := digest("trace", logID, string(of.Kind), of.ID, part)
	return trace.TraceID(sum[:16])
}

// RootID returns the ID of the span that represents a whole run or move.
func RootID(logID string, of eventlog.Aggregate) trace.SpanID {
	return spanID(logID, of, "root", "", "")
}

// spanID returns the ID of a span. what and name distinguish spans that begin with the same event.
func spanID(logID string, of eventlog.Aggregate, what, name, event string) trace.SpanID {
	sum := digest("span", logID, string(of.Kind), of.ID, what, name, event)
	return trace.SpanID(sum[:8])
}

// digest returns a hash of a list of texts. Different lists have different hashes.
func digest(texts ...string) [sha256.Size]byte {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	return sha256.Sum256(all)
}

type stored struct {
	eventlog.Event
	aggregate eventlog.Aggregate
	seq       uint64
	logID     string
}

func (ev *stored) span(name, what, part string) *Span {
	s := &Span{Name: name, SpanID: spanID(ev.logID, ev.aggregate, what, part, ev.ID), Start: ev.Time}
	s.Attributes = append(s.Attributes, attributeSequence.Int64(int64(ev.seq))) //nolint:gosec // a sequence is far below 2^63
	s.set(attributeEvent, ev.ID)
	s.set(attributeActor, ev.Actor)
	s.set(attributeCausation, ev.Causation)
	return s
}

func (ev *stored) root(name, what, part string) *Span {
	s := ev.span(name, what, part)
	s.set(attributeKind, string(ev.aggregate.Kind))
	s.set(attributeAggregate, ev.aggregate.ID)
	if parts := strings.Split(ev.aggregate.ID, "/"); len(parts) > 1 {
		s.Attributes = append(s.Attributes, semconv.K8SNamespaceName(parts[0]))
		s.set(attributeName, parts[1])
	}
	return s
}
