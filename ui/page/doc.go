// Package page makes the pages of scute: from what a log came to at a moment to HTML. The same moment gives the same page.
//
// What never may live here: reading of a log, HTTP, and decisions. Everything that a log says is text; nothing of it is markup.
package page
