// Package feed keeps what a log came to up to date while the log grows, tells open pages that there is more, and gives any moment
// of the past again.
//
// What never may live here: HTTP, and how anything is shown.
package feed
