// Package page renders the state of a log at a moment as HTML. The same moment always results in
// the same page. All content of a log is text, never markup.
//
// This package never contains reading of a log, HTTP, or decisions.
package page
