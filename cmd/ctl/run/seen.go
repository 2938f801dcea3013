package run

import (
	"context"
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// Pause pauses the run that the user saw, if the user may change its WorkflowRun.
func Pause(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	o := &pauseOptions{deps: &deps{noun: newNoun(), Kit: k}, Reason: reason}
	return o.withRun(ctx, seen, name, func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error {
		if w.Spec.Suspend {
			return kit.Refusef("spec.suspend of WorkflowRun %s is set already: no further task starts", f.ID)
		}
		return o.pause(ctx, at, f)
	})
}

// Resume resumes the run that the user saw, if the user may change its WorkflowRun. If spec.suspend is set, Resume only removes it: otherwise the
// daemon would pause the run again.
func Resume(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	o := &pauseOptions{deps: &deps{noun: newNoun(), Kit: k}, Reason: reason}
	return o.withRun(ctx, seen, name, func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error {
		if !w.Spec.Suspend {
			return o.resume(ctx, at, f)
		}
		ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
		defer cancel()
		before := w.DeepCopy()
		w.Spec.Suspend = false
		if err := at.Cluster.Client.Patch(ctx, w, seen.Patch(before)); err != nil {
			return fmt.Errorf("writing the spec of WorkflowRun %s: %w", f.ID, at.Cluster.Explain(err))
		}
		if o.Reason != "" {
			o.Env.Notef("The reason is not recorded: spec.suspend was set, and a WorkflowRun has no field for a reason.")
		}
		return o.Env.Linef("run %s: spec.suspend is no longer set", f.ID)
	})
}

// withRun calls fn with the current resource of the run that the user saw, and with the run as the log has it.
func (o *pauseOptions) withRun(ctx context.Context, seen *kit.Seen, name string, fn func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error) error {
	at, err := kit.InCluster(o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer at.Close()
	tried := &v1alpha1.WorkflowRun{}
	var w *v1alpha1.WorkflowRun
	id := func() string { return tried.Status.RunID }
	err = seen.Permit(ctx, at.Cluster, at.Key(name), tried, id, func() {
		w = tried.DeepCopy()
		tried.Spec.Suspend = !tried.Spec.Suspend
	})
	if err != nil {
		return err
	}
	f, err := foldToAppend(ctx, at, seen.ID)
	if err != nil {
		return err
	}
	return fn(at, w, f)
}
