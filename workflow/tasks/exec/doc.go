// Package exec is the kind of task Exec: it runs a command on the machine that scute runs on.
//
// What never may live here: a command of scute's own.
package exec
