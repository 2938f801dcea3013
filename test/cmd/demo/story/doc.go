// Package story prints numbered steps, facts and progress on a terminal or in a pipe. In a pipe
// nothing is drawn again, and there are no colors.
//
// What never may live here: anything of what is told.
package story
