// Package harness provides a shared test bed, deadlines, waits and daemons to the suites.
//
// It must contain neither what a suite tests nor a fake of a part of the real stack.
package harness
