// Package draw computes the layout of task graphs and of attempts on a time line. It is pure, so
// that pictures are the same for the same facts and can be compared with files.
//
// What never may live here: HTML, and what a task or an attempt means.
package draw
