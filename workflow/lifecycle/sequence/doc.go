// Package sequence builds the tasks of a named workflow from steps with typed contexts. Construction says which steps
// there are and in what order; a step says what it does and how it is undone; the engine does the rest, as for any other
// graph.
//
//	s := sequence.Begin(deps, binder, CreateContext{Cluster: spec})
//	t := sequence.Then(s, createBootstrapCluster)  // Sequence[CreateBootstrapped]
//	u := sequence.Then(t, installComponents)       // its step takes *CreateBootstrapped: anything else does not compile
//	made, problems := u.Build()
//
// The context after a step is made from the one before it and the step's output, which is in the log. So the context of a
// step is the same after a restart, and what a step needs has been set by one before it, or the program does not compile.
//
// What never may live here: anything of clusters or providers.
package sequence
