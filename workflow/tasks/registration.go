package tasks

import (
	"scute.dev/aggregate"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Registration is one kind in the registry. The lists of kinds in the API, in the CRD and in the documentation are generated from it.
type Registration struct {
	// Name is the value of the field kind in a manifest.
	Name string
	// Inputs is the zero value of the type of `with`.
	Inputs any
	// Description describes what a task of the kind does, Inverse what its Undo does.
	Description, Inverse string
	// New returns the kind for a process.
	New func(Options) task.Kind
}

// Options configure the kinds of a process.
type Options struct {
	Clusters *access.Clusters
	// Log is the log of the runs, and Incarnation the name of this process in it. A local Move is driven there.
	Log         aggregate.Log
	Incarnation string
	// Local is set for local runs, which act in this process with the operator's credentials. The daemon creates Move resources for its move
	// controller instead.
	Local bool
	// ExecEnabled allows commands on the machine of this process.
	ExecEnabled bool
}
