// Package controllertest provides an API server with one resource of scute for the tests of controllers.
//
// This package is never imported by a program.
package controllertest
