// Package projection is what the daemon knows of its log: the views of all domains, which one replay fills together.
//
// What never may live here: what any domain makes of its events, and what is done about a view.
package projection
