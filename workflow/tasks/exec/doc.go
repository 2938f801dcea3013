// Package exec implements the task kind Exec, which runs a command on the machine of this process.
//
// This package never contains a command of scute.
package exec
