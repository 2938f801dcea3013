// Package tracing derives OpenTelemetry spans from the event log: of runs with their tasks and attempts, of moves with their phases, and of
// remediations with their steps.
//
// It is pure and deterministic: the same log always produces the same spans with the same IDs. A span is returned when it has ended.
//
// This package never sends spans, and contains no clocks and no randomness.
package tracing
