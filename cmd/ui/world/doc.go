// Package world is what a log came to at a moment: every run, move, Pause and owner of machines, folded by the domains' own cores up to
// one commit.
//
// What never may live here: reading of a log, and how anything is shown.
package world
