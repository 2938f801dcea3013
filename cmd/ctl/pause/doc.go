// Package pause has scutectl's commands about Pauses, and those that pause and resume clusters by them.
//
// What never may live here: what it means that a cluster is paused.
package pause
