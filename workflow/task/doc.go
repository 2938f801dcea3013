// Package task defines the contract between the engine and the kinds of tasks: the methods of a kind, the call that an attempt receives, and the
// meaning of its errors. A kind observes before it acts, it can undo its work, and it can run again at any point: if a process crashes in the middle
// of an attempt, the next attempt still succeeds.
//
// The packages below contain code that kinds share: task/access reads and writes the objects of a cluster, task/inputs decodes the inputs of a
// manifest. The kinds are in package tasks.
//
// This package never contains a kind, or a decision about the run. A kind returns the result of an attempt; package workflow decides what follows.
package task
