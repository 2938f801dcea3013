// Package harness provides a shared test bed, deadlines, waits and daemons to the suites.
//
// What never may live here: what a suite tests, and a fake of a part of the real stack.
package harness
