package tasks

import "scute.dev/workflow/task"

// All are the kinds of tasks that a manifest can name, in the order of the documentation.
func All() []task.Registration {
	return []task.Registration{
		{
			Name: "Exec", Inputs: task.ExecWith{}, Does: "runs a command", Inverse: "none of its own: give `undo`",
			New: func(o task.Options) task.Kind { return &task.Exec{Enabled: o.ExecEnabled} },
		},
		{
			Name: "HTTP", Inputs: task.HTTPWith{}, Does: "makes a request", Inverse: "none of its own: give `undo`",
			New: func(o task.Options) task.Kind { return &task.HTTP{Clusters: o.Clusters} },
		},
		{
			Name: "Apply", Inputs: task.ApplyWith{}, Does: "applies manifests and waits until they are settled", Inverse: "deletes what it created, puts back what it changed",
			New: func(o task.Options) task.Kind { return &task.Apply{Clusters: o.Clusters} },
		},
		{
			Name: "Delete", Inputs: task.DeleteWith{}, Does: "deletes objects and waits until they are gone", Inverse: "creates them again",
			New: func(o task.Options) task.Kind { return &task.Delete{Clusters: o.Clusters} },
		},
		{
			Name: "Wait", Inputs: task.WaitWith{}, Does: "waits until objects are as they should be", Inverse: "nothing to undo",
			New: func(o task.Options) task.Kind { return &task.Wait{Clusters: o.Clusters} },
		},
		{
			Name: "Job", Inputs: task.JobWith{}, Does: "runs a Job to its end", Inverse: "deletes the Job",
			New: func(o task.Options) task.Kind { return &task.Job{Clusters: o.Clusters} },
		},
		{
			Name: "Pause", Inputs: task.PauseWith{}, Does: "keeps Cluster API, Flux or EKS Anywhere still, and waits until they are", Inverse: "puts back what it found; also at the end of every run",
			New: func(o task.Options) task.Kind { return &task.Pause{Clusters: o.Clusters} },
		},
		{
			Name: "Resume", Inputs: task.ResumeWith{}, Does: "lifts the pause of a Pause before the run ends", Inverse: "pauses again",
			New: func(o task.Options) task.Kind { return &task.Resume{Clusters: o.Clusters} },
		},
		{
			Name: "Move", Inputs: task.MoveWith{}, Does: "moves clusters to another management cluster", Inverse: "rolls back a move that is not verified; after that, none",
			New: func(o task.Options) task.Kind {
				return &task.Move{Clusters: o.Clusters, Log: o.Log, Incarnation: o.Incarnation, Resource: !o.Local}
			},
		},
		{
			Name: "Providers", Inputs: task.ProvidersWith{}, Does: "installs and upgrades Cluster API providers", Inverse: "removes what it installed; an upgrade has none",
			New: func(o task.Options) task.Kind { return &task.Providers{Clusters: o.Clusters} },
		},
		{
			Name: "Approve", Inputs: task.ApproveWith{}, Does: "waits for an operator's word", Inverse: "nothing to undo",
			New: func(task.Options) task.Kind { return task.Approve{} },
		},
		{
			Name: "Diagnose", Inputs: task.DiagnoseWith{}, Does: "collects what tells why something failed", Inverse: "nothing to undo",
			New: func(o task.Options) task.Kind { return &task.Diagnose{Clusters: o.Clusters} },
		},
	}
}

// Kinds makes all kinds for a process.
func Kinds(o task.Options) task.Kinds {
	kinds := make(task.Kinds)
	for _, r := range All() {
		kinds[r.Name] = r.New(o)
	}
	return kinds
}
