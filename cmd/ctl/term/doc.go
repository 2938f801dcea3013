// Package term draws text: tables, bars, times, colors, and a display that is redrawn in place. It
// is pure but for Screen, which writes to the writer that it is given.
//
// What never may live here: what any of it means.
package term
