// Package supervise keeps what is unfinished in a view of the log driven (moves, runs), and shares the places in which
// work is done fairly between namespaces. It knows only ids and namespaces.
//
// What never may live here: what it means to drive something, or a decision about it.
package supervise
