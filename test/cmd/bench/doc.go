// Command bench prints the figures that take the real stack, one per line and in the same format as those of
// cmd/logbench: `make bench GROUP=remediation`, `make bench GROUP=move`. It needs Linux, and the test bed's binaries, which it builds if
// they are not there.
//
// What never may live here: anything that a test needs too. That is in test/testbed and test/scuted.
package main
