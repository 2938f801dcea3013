// Package uitest creates logs of saved histories for the tests of scutectl ui.
//
// This package never contains code that a program imports.
package uitest
