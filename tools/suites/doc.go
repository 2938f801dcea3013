// Command suites runs the checks and test suites, and prints their results and times. Make calls
// it; see CONTRIBUTING.md.
//
//	suites unit promises         the unit tests, and one test on the real stack for each promise
//	suites checks stack          the checks of the tree, then every suite on the real stack, two at a time
//	suites -repeat 10 e2e        one suite ten times, and a table of its times
//	suites -burn 2 -repeat 3 ... the same beside two processes that each burn a core
//
// It knows nothing of what a suite tests. A suite is a target of make, or a package of the module test/ that has tests.
package main
