// Package timespan formats durations in a sentence.
//
// What never may live here: the notation of flags, of resources and of the log, which is Go's.
package timespan
