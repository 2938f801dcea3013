// Package otlp sends the spans of the event log to an OpenTelemetry collector over gRPC. Each span
// is sent at least once, always with the same IDs.
//
// This package never defines what a span is, and never delays a writer of the log.
package otlp
