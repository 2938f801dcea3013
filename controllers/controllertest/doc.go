// Package controllertest contains helpers for the tests of the controllers: a fake client with a resource of scute, and a view that has caught up
// with the log.
//
// This package is never imported by a program.
package controllertest
