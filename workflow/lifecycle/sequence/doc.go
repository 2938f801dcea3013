// Package sequence builds the tasks of a named workflow from steps with typed contexts. The construction defines the steps and their order; a step
// defines how it runs and how it is undone; the engine does the rest, as for any other graph.
//
//	s := sequence.Begin(clusters, CreateContext{Cluster: spec})
//	t := sequence.Then(s, createBootstrapCluster)  // Sequence[CreateBootstrapped]
//	u := sequence.Then(t, installComponents)       // its step takes *CreateBootstrapped: anything else does not compile
//	made, problems := u.Build(binder)
//
// The context after a step is built from the context before it and the step's output, which is in the log. So a step's context is the same after a
// restart, and the compiler checks that an earlier step has set what a step needs.
//
// This package never contains code about clusters or providers.
package sequence
