package run

import (
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

// Documents returns the run.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	r := f.Refresh()
	d := kit.Document{
		Kind: "run", Namespace: r.Namespace, Name: r.Name, ID: r.ID, Phase: string(r.Phase()), Message: r.Status.Message, Next: r.Status.Next,
		Progress: r.Status.Progress + " tasks", Began: "requested", Since: r.CreatedAt, Actions: Actions(r),
	}
	switch {
	case IsFinished(r.Phase()):
		d.End(r.Status.FinishedAt)
	case IsIdle(r.Phase()), r.Phase() == v1alpha1.RunPartiallyPaused:
		d.State, d.Commands = kit.Waiting, NextCommands(k, r)
	}
	return []kit.Document{d}
}

// Actions returns what users can do with a run now.
func Actions(r *Run) []kit.Action {
	a := kit.Action{Do: "pause", Kind: "run", Namespace: r.Namespace, Name: r.Name, ID: r.ID}
	switch now := workflow.Summarize(r.State); {
	case IsFinished(r.Phase()), r.Phase() == v1alpha1.RunStranded:
		return nil
	case now.Paused, r.Phase() == v1alpha1.RunAborted:
		a.Do = "resume"
	case now.Stopping: // it rolls back, or waits for a decision about the rollback
		return nil
	}
	return []kit.Action{a}
}
