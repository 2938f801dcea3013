// Package app wires scuted: flags, the log, the controllers and the runners. Because it is not
// package main, the fault tests can run the same daemon with wrapped connections.
//
// This package never contains logic.
package app
