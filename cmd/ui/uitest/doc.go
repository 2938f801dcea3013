// Package uitest creates logs of saved histories for the tests of scutectl ui.
//
// What never may live here: anything that a program imports.
package uitest
