// Package feed keeps the state of a growing log, notifies open pages, and computes past states. The
// commits are in a temporary file.
//
// This package never contains HTTP or rendering.
package feed
