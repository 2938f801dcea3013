// Package page renders the state of a log at a moment as HTML. The same moment gives the same page.
//
// What never may live here: reading of a log, HTTP, and decisions. Everything that a log says is text; nothing of it is markup.
package page
