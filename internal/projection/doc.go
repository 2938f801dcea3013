// Package projection fills the daemon's views of all domains with one replay of the log.
//
// This package never interprets a domain's events, and never acts on a view.
package projection
