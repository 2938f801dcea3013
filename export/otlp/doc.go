// Package otlp sends the spans of the event log to an OpenTelemetry collector over gRPC. Each is
// sent at least once, with the same identifiers each time.
//
// This package never defines what a span is, and never delays a writer of the log.
package otlp
