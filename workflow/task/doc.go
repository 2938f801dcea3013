// Package task holds the kinds of tasks that tasks.Kinds registers. Each observes before it acts, each has an inverse, each
// may be run again at any point: a process that dies in the middle leaves nothing that a second attempt stumbles over.
//
// What never may live here: a decision about the run. A kind says what came of an attempt; what follows from it is for
// package workflow to decide.
package task
