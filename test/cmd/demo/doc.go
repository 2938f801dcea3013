// Command demo moves a cluster between two real management clusters and kills scuted twice. It
// kills scuted with SIGKILL, once while it creates on the target and once while it deletes at the
// source. It ends with status 0 only if every check held, 1 if one did not, 130 if it was
// interrupted. The cloud proves that no machine was touched, and the log proves the kills.
//
// What never may live here: anything that a test needs too. That is in test/testbed and test/scuted.
package main
