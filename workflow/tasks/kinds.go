package tasks

import (
	"scute.dev/aggregate"
	"scute.dev/workflow/task"
)

// Options say what the kinds of a process may use.
type Options struct {
	Clusters *task.Clusters
	// Log is that of the runs, and Incarnation this process's name in it: a local Move is driven there.
	Log         aggregate.Log
	Incarnation string
	// Local runs act in this process with the operator's own credentials; the daemon leaves moves to its own controller.
	Local bool
	// ExecEnabled allows commands on the machine that this process runs on.
	ExecEnabled bool
}

// Kinds are all kinds of tasks that a manifest can name.
func Kinds(o Options) task.Kinds {
	return task.Kinds{
		"Exec":      &task.Exec{Enabled: o.ExecEnabled},
		"HTTP":      &task.HTTP{Clusters: o.Clusters},
		"Apply":     &task.Apply{Clusters: o.Clusters},
		"Delete":    &task.Delete{Clusters: o.Clusters},
		"Wait":      &task.Wait{Clusters: o.Clusters},
		"Job":       &task.Job{Clusters: o.Clusters},
		"Pause":     &task.Pause{Clusters: o.Clusters},
		"Resume":    &task.Resume{Clusters: o.Clusters},
		"Move":      &task.Move{Clusters: o.Clusters, Log: o.Log, Incarnation: o.Incarnation, Resource: !o.Local},
		"Providers": &task.Providers{Clusters: o.Clusters},
		"Approve":   task.Approve{},
		"Diagnose":  &task.Diagnose{Clusters: o.Clusters},
	}
}
