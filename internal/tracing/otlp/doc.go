// Package otlp sends the spans of the event log to an OpenTelemetry collector, by OTLP over gRPC. It sends each span at least once, with the same IDs
// each time.
//
// This package never defines what a span is, and never delays a writer of the log.
package otlp
