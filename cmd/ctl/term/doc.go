// Package term draws text: tables, bars, times, colors, and a display that is redrawn in place. It is pure except for Screen, which writes to its
// writer.
//
// This package never contains the meaning of what it draws.
package term
