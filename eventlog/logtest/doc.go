// Package logtest opens event logs for tests and benchmarks.
//
// What never may live here: anything that a program imports.
package logtest
