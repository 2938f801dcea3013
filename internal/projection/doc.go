// Package projection contains the daemon's state from its log: the views of all domains, which one replay fills together.
//
// This package never interprets a domain's events, and never acts on a view.
package projection
