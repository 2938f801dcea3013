// Package supervise keeps what is unfinished in a view of the log driven: moves, runs. It knows only their ids.
//
// What never may live here: what it means to drive something, or a decision about it.
package supervise
