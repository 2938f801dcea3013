// Package story prints numbered steps, facts and progress on a terminal or in a pipe. In a pipe nothing is redrawn, and
// there are no colors.
//
// It must not contain any of the content that is printed.
package story
