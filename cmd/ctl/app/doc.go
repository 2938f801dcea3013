// Package app joins scutectl's commands into one program and makes exit codes of what they return.
//
// What never may live here: what a command does.
package app
