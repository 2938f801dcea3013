package tasks

import (
	"scute.dev/aggregate"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Registration is what the registry knows of a kind. The lists of kinds in the API, in the CRD and in the documentation are
// generated from it.
type Registration struct {
	// Name that a manifest gives in the field kind.
	Name string
	// Inputs is the zero value of the type of `with`.
	Inputs any
	// Does says what a task of the kind does, Inverse what its Undo does.
	Does, Inverse string
	// New makes the kind for a process.
	New func(Options) task.Kind
}

// Options say what the kinds of a process may use.
type Options struct {
	Clusters *access.Clusters
	// Log is that of the runs, and Incarnation this process's name in it: a local Move is driven there.
	Log         aggregate.Log
	Incarnation string
	// Local runs act in this process with the operator's own credentials; the daemon leaves moves to its own controller.
	Local bool
	// ExecEnabled allows commands on the machine that this process runs on.
	ExecEnabled bool
}
