package tasks

import (
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/approve"
	"scute.dev/workflow/tasks/exec"
)

// All are the kinds of tasks that a manifest can name, in the order of the documentation.
func All() []Registration {
	return []Registration{
		{
			Name: "Exec", Inputs: exec.With{}, Does: "runs a command", Inverse: "none of its own: give `undo`",
			New: func(o Options) task.Kind { return &exec.Kind{Enabled: o.ExecEnabled} },
		},
		{
			Name: "HTTP", Inputs: HTTPWith{}, Does: "makes a request", Inverse: "none of its own: give `undo`",
			New: func(o Options) task.Kind { return &HTTP{Clusters: o.Clusters} },
		},
		{
			Name: "Apply", Inputs: ApplyWith{}, Does: "applies manifests and waits until they are settled", Inverse: "deletes what it created, puts back what it changed",
			New: func(o Options) task.Kind { return &Apply{Clusters: o.Clusters} },
		},
		{
			Name: "Delete", Inputs: DeleteWith{}, Does: "deletes objects and waits until they are gone", Inverse: "creates them again",
			New: func(o Options) task.Kind { return &Delete{Clusters: o.Clusters} },
		},
		{
			Name: "Wait", Inputs: WaitWith{}, Does: "waits until objects are as they should be", Inverse: "nothing to undo",
			New: func(o Options) task.Kind { return &Wait{Clusters: o.Clusters} },
		},
		{
			Name: "Job", Inputs: JobWith{}, Does: "runs a Job to its end", Inverse: "deletes the Job",
			New: func(o Options) task.Kind { return &Job{Clusters: o.Clusters} },
		},
		{
			Name: "Pause", Inputs: PauseWith{}, Does: "keeps Cluster API, Flux or EKS Anywhere still, and waits until they are", Inverse: "puts back what it found; also at the end of every run",
			New: func(o Options) task.Kind { return &Pause{Clusters: o.Clusters} },
		},
		{
			Name: "Resume", Inputs: ResumeWith{}, Does: "lifts the pause of a Pause before the run ends", Inverse: "pauses again",
			New: func(o Options) task.Kind { return &Resume{Clusters: o.Clusters} },
		},
		{
			Name: "Move", Inputs: MoveWith{}, Does: "moves clusters to another management cluster", Inverse: "rolls back a move that is not verified; after that, none",
			New: func(o Options) task.Kind {
				return &Move{Clusters: o.Clusters, Log: o.Log, Incarnation: o.Incarnation, Resource: !o.Local}
			},
		},
		{
			Name: "Providers", Inputs: ProvidersWith{}, Does: "installs and upgrades Cluster API providers", Inverse: "removes what it installed; an upgrade has none",
			New: func(o Options) task.Kind { return &Providers{Clusters: o.Clusters} },
		},
		{
			Name: "Approve", Inputs: approve.With{}, Does: "waits for an operator's word", Inverse: "nothing to undo",
			New: func(Options) task.Kind { return approve.Kind{} },
		},
		{
			Name: "Diagnose", Inputs: DiagnoseWith{}, Does: "collects what tells why something failed", Inverse: "nothing to undo",
			New: func(o Options) task.Kind { return &Diagnose{Clusters: o.Clusters} },
		},
	}
}

// Kinds makes all kinds for a process.
func Kinds(o Options) task.Kinds {
	kinds := make(task.Kinds)
	for _, r := range All() {
		kinds[r.Name] = r.New(o)
	}
	return kinds
}
