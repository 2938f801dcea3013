// Package task is the contract between the engine and the task kinds. It defines a kind, the input
// of one attempt, and the meaning of errors. Each kind observes before it acts, each has an
// inverse, each may be run again at any point: a process that dies in the middle leaves nothing
// that a second attempt stumbles over.
//
// What kinds share is in the packages below this one: task/access reads and writes the objects of a cluster, task/inputs reads
// what a manifest gives. The kinds are in package tasks.
//
// What never may live here: a kind, and a decision about the run. A kind says the result of an attempt; what follows from it
// is for package workflow to decide.
package task
