// Package push hands a local run over to the log of a cluster: its commits are copied as they are, and from then on it
// continues there and nowhere else. Whatever step a death comes before, doing it again completes it.
//
// What never may live here: a decision about a run, and flags.
package push
