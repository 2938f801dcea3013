// Package tracing derives OpenTelemetry spans of runs, moves and remediations from the event log.
//
// It is pure and deterministic: the same log always produces the same spans with the same IDs. A
// span is returned when it has ended.
//
// This package never sends spans, and contains no clocks and no randomness.
package tracing
