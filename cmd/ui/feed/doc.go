// Package feed updates the state of a growing log, notifies open pages, and computes past states.
//
// What never may live here: HTTP, and how anything is shown.
package feed
