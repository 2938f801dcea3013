// Command demo moves a running cluster between two real management clusters and kills scuted twice on the way, with
// SIGKILL, once while it creates on the target and once while it deletes at the source. It ends with status 0 only if
// every check held, 1 if one did not, 130 if it was interrupted: that no machine noticed is read from the cloud, the
// deaths from the log, and neither is claimed.
//
// What never may live here: anything that a test needs too. That is in test/testbed and test/scuted.
package main
