package run

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	wf "scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// needsAdoption reports whether a command changes what a run does with its permissions. The daemon waits until its WorkflowRun adopts the change.
func needsAdoption(in wf.Input) bool {
	switch in := in.(type) {
	case wf.Migrate:
		return true
	case wf.Decision:
		return in.With != nil || in.Output != nil
	default:
		return false
	}
}

// change writes a command that needs adoption to the log, and makes the WorkflowRun adopt it. The API server decides whether the user may do so.
func (d *deps) change(ctx context.Context, at *session, f *Fold, actor string, in wf.Input) error {
	permit := func(string) error { return nil }
	if at.Cluster != nil {
		var w v1alpha1.WorkflowRun
		if err := at.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: f.Name}, &w); err != nil {
			return at.Cluster.Explain(err)
		}
		if id, _, err := w.LogID(); err != nil || id != f.ID {
			return fmt.Errorf("the WorkflowRun %s/%s belongs to run %s, and not to this run", w.Namespace, w.Name, id)
		}
		if err := adopt(ctx, at.Cluster, &w, w.Annotations[v1alpha1.AdoptedAnnotation], client.DryRunAll); err != nil {
			return err
		}
		permit = func(digest string) error {
			if digest != w.Annotations[v1alpha1.AdoptedAnnotation] {
				return fmt.Errorf("a client has changed the run in the log, and its WorkflowRun has not adopted the change: review the change (%s), and adopt it first: %s",
					d.Hint("", "log", "tail", "--aggregate", "run/"+f.ID), runner.AdoptCommand(f.Namespace, f.Name, digest))
			}
			return nil
		}
	}
	digest, err := (&runner.Runner{Log: at.Log.Log, Now: d.Env.Now}).Change(ctx, f.ID, actor, in, permit)
	if err != nil {
		return err
	}
	if at.Cluster == nil {
		d.Env.Notef("The daemon continues when the WorkflowRun adopts this: %s", runner.AdoptCommand(f.Namespace, f.Name, digest))
		return nil
	}
	w := v1alpha1.WorkflowRun{}
	w.Namespace, w.Name = f.Namespace, f.Name
	if err := adopt(ctx, at.Cluster, &w, digest); err != nil {
		return fmt.Errorf("the change is recorded, and the daemon waits for its adoption: %w: %s", err, runner.AdoptCommand(f.Namespace, f.Name, digest))
	}
	return nil
}

// adopt makes a WorkflowRun adopt the change with a digest.
func adopt(ctx context.Context, cluster *connect.Cluster, w *v1alpha1.WorkflowRun, digest string, options ...client.PatchOption) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AdoptedAnnotation, digest)
	if err := cluster.Client.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), options...); err != nil {
		return fmt.Errorf("writing metadata.annotations[%s] of WorkflowRun %s/%s: %w", v1alpha1.AdoptedAnnotation, w.Namespace, w.Name, cluster.Explain(err))
	}
	return nil
}
