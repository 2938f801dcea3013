// Command bench prints the benchmark figures of the real stack, one per line. The format is that of cmd/logbench: `make
// bench GROUP=remediation`, `make bench GROUP=move`. It needs Linux, and the test bed's binaries, which it builds if
// they do not exist.
//
// It must not contain anything that a test needs too. That belongs in test/testbed and test/scuted.
package main
