// Package controllertest has what the tests of the controllers have in common: an API server that has one resource of scute, and a view that has
// caught up with the log.
//
// What never may live here: anything that a program imports.
package controllertest
