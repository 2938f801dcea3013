// Package exec implements the task kind Exec, which runs a command on scute's machine.
//
// This package never contains a command of scute.
package exec
