// Package app joins scutectl's commands into one program and maps their errors to exit codes.
//
// This package never contains the implementation of a command.
package app
