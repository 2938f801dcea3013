// Package comparison judges what two systems make of the same fault, and writes the table of it into the documentation: of machines
// that are repaired (Case), and of moves whose process is killed (Crash). It causes no fault and asks no cluster: the packages
// test/remediation and test/crash do.
package comparison
