// Command demo moves a cluster between two real management clusters and kills scuted twice. It kills scuted with
// SIGKILL, once while it creates on the target and once while it deletes at the source. The exit status is 0 only if
// every check held, 1 if one did not, and 130 if it was interrupted. The cloud proves that no machine was changed, and
// the log proves the kills.
//
// It must not contain anything that a test needs too. That belongs in test/testbed and test/scuted.
package main
