// Package projection fills the daemon's views of all domains with one replay of the log.
//
// What never may live here: what any domain makes of its events, and what is done about a view.
package projection
