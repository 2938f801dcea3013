// Package tracing derives OpenTelemetry spans of runs, moves and remediations from the event log.
//
// It is a fold over events, pure and deterministic: the same log gives the same spans with the same identifiers, wherever and
// however often it is read. A span appears when it has ended. What never may live here: what sends spans, clocks, randomness.
package tracing
