package tasks

import (
	"runtime"
	"slices"

	"scute.dev/aggregate"
	"scute.dev/internal/fair"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
	"scute.dev/workflow/tasks/deletion"
	"scute.dev/workflow/tasks/diagnose"
	"scute.dev/workflow/tasks/exec"
	"scute.dev/workflow/tasks/httprequest"
	"scute.dev/workflow/tasks/job"
	"scute.dev/workflow/tasks/move"
	"scute.dev/workflow/tasks/pause"
	"scute.dev/workflow/tasks/wait"
)

// All returns the task kinds that a manifest can name, in the order of the documentation.
func All() []Registration {
	return slices.Concat([]Registration{
		{
			Name: "Exec", Inputs: exec.With{}, Description: "runs a command", Inverse: "none: give `undo`",
			New: func(o Options) task.Kind { return &exec.Kind{Enabled: o.ExecEnabled} },
		},
		{
			Name: "HTTP", Inputs: httprequest.With{}, Description: "makes a request", Inverse: "none: give `undo`",
			New: func(o Options) task.Kind { return &httprequest.Kind{Clusters: o.Clusters} },
		},
		{
			Name: "Apply", Inputs: apply.With{}, Description: "applies manifests and waits until they are settled", Inverse: "deletes what it created, restores what it changed",
			New: func(o Options) task.Kind { return &apply.Kind{Clusters: o.Clusters} },
		},
		{
			Name: "Delete", Inputs: deletion.With{}, Description: "deletes objects and waits until they are gone", Inverse: "creates them again",
			New: func(o Options) task.Kind { return &deletion.Kind{Clusters: o.Clusters} },
		},
		{
			Name: "Wait", Inputs: wait.With{}, Description: "waits until objects reach a state", Inverse: "nothing to undo",
			New: func(o Options) task.Kind {
				return &wait.Kind{Clusters: o.Clusters, Evaluations: fair.NewSlots(max(1, runtime.GOMAXPROCS(0)/2))} // plus as many for namespaces with less than an equal share
			},
		},
		{
			Name: "Job", Inputs: job.With{}, Description: "runs a Job until it ends", Inverse: "deletes the Job",
			New: func(o Options) task.Kind { return &job.Kind{Clusters: o.Clusters} },
		},
		{
			Name: "Pause", Inputs: pause.With{}, Description: "pauses Cluster API, Flux or EKS Anywhere, and waits until the controllers have stopped",
			Inverse: "restores the earlier state; also when the run ends",
			New:     func(o Options) task.Kind { return &pause.Kind{Clusters: o.Clusters} },
		},
		{
			Name: "Resume", Inputs: pause.ResumeWith{}, Description: "ends a pause of kind Pause before the run ends", Inverse: "pauses again",
			New: func(o Options) task.Kind { return &pause.ResumeKind{Clusters: o.Clusters} },
		},
		{
			Name: "Move", Inputs: move.With{}, Description: "moves clusters to another management cluster",
			Inverse: "rolls back a move before it is verified; none after that",
			New: func(o Options) task.Kind {
				return &move.Kind{Clusters: o.Clusters, Log: o.Log, Incarnation: o.Incarnation, Resource: !o.Local}
			},
		},
	}, ofClusterctl(), []Registration{
		{
			Name: "Approve", Inputs: ApproveWith{}, Description: "waits for an operator's decision", Inverse: "nothing to undo",
			New: func(Options) task.Kind { return Approve{} },
		},
		{
			Name: "Diagnose", Inputs: diagnose.With{}, Description: "collects objects, conditions, events and logs after a failure", Inverse: "nothing to undo",
			New: func(o Options) task.Kind { return &diagnose.Kind{Clusters: o.Clusters} },
		},
	})
}

// Kinds returns all kinds for a process.
func Kinds(o Options) task.Kinds {
	kinds := make(task.Kinds)
	for _, r := range All() {
		kinds[r.Name] = r.New(o)
	}
	return kinds
}

// Registration is one kind in the registry. The lists of kinds in the API, in the CRD and in the
// documentation are generated from it.
type Registration struct {
	// Name is the value of the field kind in a manifest.
	Name   string
	Inputs any
	// Description describes what a task of the kind does, and Inverse what its undo does.
	Description, Inverse string
	New                  func(Options) task.Kind
}

// Options configure the kinds of a process.
type Options struct {
	Clusters *access.Clusters
	// Log is the log of the runs. A local Move is driven in this log by this process, whose name there
	// is Incarnation.
	Log         aggregate.Log
	Incarnation string
	// Local is set for local runs, whose tasks act in this process with the operator's credentials. In
	// the daemon, a Move task creates a Move resource instead.
	Local bool
	// ExecEnabled allows commands on the machine of this process.
	ExecEnabled bool
}
