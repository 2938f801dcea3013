// Package timespan formats durations in a sentence.
//
// This package never defines the notation of durations in flags, in resources and in the log, which is Go's.
package timespan
