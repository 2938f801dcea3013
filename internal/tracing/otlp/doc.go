// Package otlp sends the spans of the event log to a collector of OpenTelemetry, by OTLP over gRPC: each at least once, and with the
// same identifiers each time.
//
// What never may live here: what a span is, and anything that holds up a writer of the log.
package otlp
