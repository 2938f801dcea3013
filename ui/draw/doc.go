// Package draw computes the layout of task graphs and of attempts on a time line. It is pure: the
// same input results in the same picture, and tests compare pictures with files.
//
// This package never contains HTML or the meaning of a task or an attempt.
package draw
