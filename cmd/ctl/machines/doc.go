// Package machines is the command `scutectl machines`: the machines of each control plane at a glance.
//
// What never may live here: what a machine's health is, or any write.
package machines
