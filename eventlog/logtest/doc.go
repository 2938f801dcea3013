// Package logtest opens event logs for tests and benchmarks.
//
// This package never contains anything that a program imports.
package logtest
