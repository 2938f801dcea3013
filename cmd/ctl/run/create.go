package run

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

// runInCluster creates the WorkflowRun, or resumes it if it exists, and follows it.
func (o *runOptions) runInCluster(ctx context.Context, w *v1alpha1.WorkflowRun, problems []workflow.Problem) error {
	// The daemon would reject the manifest for these problems. Exec counts as enabled, because this
	// process does not know whether the daemon enables it.
	env := o.workflowEnv(tasks.Options{Clusters: &access.Clusters{}, ExecEnabled: true}, "")
	if err := o.report(mergeProblems(problems, env.Check(w.Namespace, w.Name, &w.Spec))); err != nil {
		return err
	}
	at, err := kit.InCluster(o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer at.Close()
	if w.Namespace == "" {
		w.Namespace = at.Cluster.Namespace
	}
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	there, err := at.Get(ctx, key)
	switch {
	case errors.Is(err, kit.ErrNotFound):
		if err := o.create(ctx, at.Cluster, w); err != nil {
			return err
		}
		if w.Spec.Suspend {
			o.Env.Notef("It starts when spec.suspend is set to false.")
			return cli.SilentExit(cli.ExitPaused)
		}
	case err != nil:
		return err
	default:
		if err := o.checkUnchanged(ctx, at, there, w); err != nil {
			return err
		}
		if err := o.resumeExisting(ctx, at, there); err != nil {
			return err
		}
	}
	if !o.Wait {
		return nil
	}
	return at.Follow(ctx, key, &o.Format)
}

func (o *runOptions) create(ctx context.Context, cluster *connect.Cluster, w *v1alpha1.WorkflowRun) error {
	if err := cluster.Client.Create(ctx, w); err != nil {
		return fmt.Errorf("creating run %s/%s: %w", w.Namespace, w.Name, cluster.Explain(err))
	}
	o.Env.Notef("run %s/%s created", w.Namespace, w.Name)
	return nil
}

// checkUnchanged returns an error if the manifest differs from the existing run. It compares the
// existing run with the result of a dry-run update, so that both have all defaults. It checks
// nothing if the user may not update WorkflowRuns.
func (o *runOptions) checkUnchanged(ctx context.Context, at *session, r *Run, w *v1alpha1.WorkflowRun) error {
	if isFinished(r.Phase()) {
		return nil
	}
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	there := &v1alpha1.WorkflowRun{}
	if err := at.Cluster.Client.Get(ctx, key, there); err != nil {
		return fmt.Errorf("reading run %s: %w", key, at.Cluster.Explain(err))
	}
	suspend := there.Spec.Suspend
	there.Spec = *w.Spec.DeepCopy()
	there.Spec.Suspend = suspend
	err := at.Cluster.Client.Update(ctx, there, client.DryRunAll)
	if !apierrors.IsInvalid(err) {
		return nil
	}
	f, err := o.fold(ctx, at, key)
	if err != nil {
		return err
	}
	d, err := o.definition(ctx, o.environment(nil, "", ""), w.Namespace, w, nil)
	if err != nil || d.Hash() == f.State.Hash { // the run was migrated to this definition
		return err
	}
	return o.checkEdited(&f.Run, d, o.File)
}

// resumeExisting resumes the existing run if it is idle. It fails if the run is finished.
func (o *runOptions) resumeExisting(ctx context.Context, at *session, r *Run) error {
	name := r.Namespace + "/" + r.Name
	phase := r.Phase()
	switch {
	case isFinished(phase):
		return cli.Usagef("run %s already exists and has ended: it is %s. Delete it (kubectl delete workflowrun %s -n %s) and run this command again, or choose another name", name, phase, r.Name, r.Namespace)
	case !isIdle(phase):
		o.Env.Notef("run %s already exists and is %s: following it", name, phase)
		return nil
	}
	f, err := o.fold(ctx, at, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if err != nil {
		return err
	}
	if !justDecided(f) {
		actor, err := o.submit(ctx, at, f, workflow.ResumeRun{})
		if err != nil {
			return err
		}
		o.Env.Notef("Resuming run %s, which was %s. Finished tasks are skipped (resumed by %s).", f.ID, phase, actor)
	}
	return o.waitShown(ctx, at, f)
}
