// Package inputs decodes and validates the inputs of a task. It does so before and after references
// to outputs are replaced.
//
// This package never interprets the inputs of a kind.
package inputs
