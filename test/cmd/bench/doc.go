// Command bench prints the benchmark figures of the real stack, one per line. The format is that of
// cmd/logbench: `make bench GROUP=remediation`, `make bench GROUP=move`. It needs Linux, and the
// test bed's binaries, which it builds if they are not there.
//
// What never may live here: anything that a test needs too. That is in test/testbed and test/scuted.
package main
