// Package inputs decodes and checks the inputs of a task, before and after references to outputs are replaced.
//
// This package never interprets the inputs of a kind.
package inputs
