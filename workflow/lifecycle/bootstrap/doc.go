// Package bootstrap brings the temporary cluster that manages a management cluster while that one is made, upgraded or
// deleted: one that is there already, or one that the program kind makes on this machine.
//
// What never may live here: what is installed on it.
package bootstrap
