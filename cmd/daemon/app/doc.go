// Package app assembles scuted from flags, the log, the controllers and the runners. It is separate from package main so that the fault tests can run
// the same daemon with wrapped connections.
//
// This package never contains logic.
package app
