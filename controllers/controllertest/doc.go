// Package controllertest provides an API server and a view for the tests of controllers. The API
// server has one resource of scute, and the view has caught up with the log.
//
// This package is never imported by a program.
package controllertest
