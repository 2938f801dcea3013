// Package comparison compares two systems after the same fault, and writes the documentation's table. A Case is a
// repaired machine, a Crash a move whose process is killed. The package neither causes faults nor reads clusters: the
// packages test/remediation and test/crash do.
package comparison
