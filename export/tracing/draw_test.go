package tracing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"scute.dev/eventlog"
)

var (
	at         = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	attributes = cmp.Comparer(func(a, b attribute.KeyValue) bool { return a == b })
)

// renderTree renders spans as a tree, ordered by their start times.
func renderTree(spans []Span, records []eventlog.Record) string {
	var b strings.Builder
	events, _ := records[0].Events()
	begin := events[0].Time
	var below func(parent trace.SpanID, depth int)
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanID] = true
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	write := func(s Span, depth int) {
		fmt.Fprintf(&b, "%s%s %s +%s %s", strings.Repeat("  ", depth), s.SpanID, s.Name, s.Start.Sub(begin).Round(time.Millisecond), s.End.Sub(s.Start).Round(time.Millisecond))
		if depth == 0 {
			fmt.Fprintf(&b, " trace %s", s.TraceID)
		}
		if s.Failed {
			fmt.Fprintf(&b, " FAILED %.60q", s.Message)
		}
		for _, kv := range s.Attributes {
			switch kv.Key {
			case attributeEvent, attributeActor, attributeEndActor, attributeCausation, attributeSequence, attributeAggregate, attributeKind:
			default:
				fmt.Fprintf(&b, " %s=%s", kv.Key, kv.Value.String())
			}
		}
		b.WriteByte('\n')
	}
	below = func(parent trace.SpanID, depth int) {
		for _, s := range spans {
			if s.Parent == parent {
				write(s, depth)
				below(s.SpanID, depth+1)
			}
		}
	}
	below(trace.SpanID{}, 0)
	for _, s := range spans {
		if s.Parent.IsValid() && !known[s.Parent] {
			write(s, 0)
		}
	}
	return b.String()
}
