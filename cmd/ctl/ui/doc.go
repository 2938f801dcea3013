// Package ui is `scutectl ui`: pages about what a log says, served to the one who started it, on this machine.
//
// What never may live here: what is on a page, and how anything is changed.
package ui
