// Package controllertest provides a fake API server with one resource of scute.
//
// This package is never imported by a program.
package controllertest
