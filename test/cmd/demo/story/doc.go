// Package story tells on a terminal, or in a pipe, what happens while it happens: numbered steps, one line per fact with
// the time since the start, and a live line with progress that is drawn again in place. In a pipe nothing is drawn
// again, and there are no colors.
//
// What never may live here: anything of what is told.
package story
