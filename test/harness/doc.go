// Package harness is what the suites of the real stack have in common: a test bed that all tests of a package share, deadlines, waits,
// and daemons that end with their test.
//
// What never may live here: what a suite tests, and a fake of a part of the real stack.
package harness
