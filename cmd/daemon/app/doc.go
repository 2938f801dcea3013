// Package app wires scuted: flags, the log, the controllers and the runners. It is apart from
// package main so that the fault tests can run the same daemon with its connections wrapped.
//
// This package never contains logic.
package app
