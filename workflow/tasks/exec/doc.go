// Package exec implements the task kind Exec, which runs a command on scute's machine.
//
// What never may live here: a command of scute's own.
package exec
