// Package machines is the command `scutectl get machines`: the machines of each cluster at a glance.
//
// What never may live here: what a machine's health is, or any write.
package machines
