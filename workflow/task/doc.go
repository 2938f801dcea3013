// Package task is the contract between the engine and the task kinds. It defines a kind, the input
// of one attempt, and the meaning of errors. Each kind observes before it acts, has an inverse, and
// may run again at any point: a process that dies in the middle leaves nothing that a second
// attempt cannot handle.
//
// It also decodes and validates the inputs of a task, before and after references to outputs are
// replaced. Package task/access reads and writes the objects of a cluster. The kinds are in package
// tasks.
//
// This package never contains a kind, or a decision about the run. A kind returns the result of an
// attempt; package workflow decides what follows.
package task
