// Package otlp sends the spans of the event log to an OpenTelemetry collector over gRPC. Each is
// sent at least once, with the same identifiers each time.
//
// What never may live here: what a span is, and anything that holds up a writer of the log.
package otlp
