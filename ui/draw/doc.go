// Package draw places what a page draws: tasks and what they need in layers from left to right, and attempts along a line of time. It
// is pure, so that pictures are the same for the same facts and can be compared with files.
//
// What never may live here: HTML, and what a task or an attempt means.
package draw
