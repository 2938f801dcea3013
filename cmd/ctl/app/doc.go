// Package app joins scutectl's commands into one program and maps their errors to exit codes.
//
// What never may live here: what a command does.
package app
