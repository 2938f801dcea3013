// Package uitest makes logs of saved histories for the tests of scutectl ui: of real runs, moves, Pauses and remediations.
//
// What never may live here: anything that a program imports.
package uitest
