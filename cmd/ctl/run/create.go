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
	"scute.dev/cmd/ctl/source"
	"scute.dev/workflow"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

// runInCluster makes the WorkflowRun, or resumes the one that is there, and follows it.
func (o *runOptions) runInCluster(ctx context.Context, w *v1alpha1.WorkflowRun, problems []workflow.Problem) error {
	problems = together(problems, o.foresee(w))
	if refused(problems) {
		return o.refuse(problems)
	}
	o.warn(problems)
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
	case errors.Is(err, source.ErrNotFound):
		if err := o.create(ctx, at.Cluster, w); err != nil {
			return err
		}
		if w.Spec.Suspend {
			o.Env.Notef("It begins when spec.suspend is set to false.")
			return cli.Silently(cli.ExitPaused)
		}
	case err != nil:
		return err
	default:
		if err := o.unchanged(ctx, at, there, w); err != nil {
			return err
		}
		if err := o.again(ctx, at, there); err != nil {
			return err
		}
	}
	if !o.Wait {
		return nil
	}
	return at.Follow(ctx, key, &o.Format)
}

// foresee finds what the daemon would refuse, as far as it can be told without the cluster. Whether Exec is enabled there
// is for the daemon to say.
func (o *runOptions) foresee(w *v1alpha1.WorkflowRun) []workflow.Problem {
	env := o.offers(tasks.Options{Clusters: &access.Clusters{}, Log: &lateLog{}, ExecEnabled: true}, "")
	return env.Check(w.Namespace, w.Name, &w.Spec)
}

func (o *runOptions) create(ctx context.Context, cluster *connect.Cluster, w *v1alpha1.WorkflowRun) error {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	if err := cluster.Client.Create(ctx, w); err != nil {
		return fmt.Errorf("making run %s/%s: %w", w.Namespace, w.Name, cluster.Explain(err))
	}
	o.Env.Notef("run %s/%s made", w.Namespace, w.Name)
	return nil
}

// unchanged refuses a manifest that is not the one of the run that is there. The API server compares them, with its defaults
// filled in: only suspend of a WorkflowRun can be changed. A user who may not make that request is not stopped by it.
func (o *runOptions) unchanged(ctx context.Context, at *place, r *Run, w *v1alpha1.WorkflowRun) error {
	if Finished(r.Phase()) {
		return nil
	}
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	asking, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	there := &v1alpha1.WorkflowRun{}
	if err := at.Cluster.Client.Get(asking, key, there); err != nil {
		return fmt.Errorf("reading run %s: %w", key, at.Cluster.Explain(err))
	}
	suspend := there.Spec.Suspend
	there.Spec = *w.Spec.DeepCopy()
	there.Spec.Suspend = suspend
	err := at.Cluster.Client.Update(asking, there, client.DryRunAll)
	if !apierrors.IsInvalid(err) {
		return nil
	}
	f, err := o.fold(ctx, at, key)
	if err != nil {
		return err
	}
	d, problems, err := o.environment(&lateLog{}, "", "").Definition(ctx, w.Namespace, w.Name, &w.Spec)
	switch {
	case err != nil:
		return cli.Usagef("reading what the manifest refers to: %w", err)
	case d == nil:
		return o.refuse(problems)
	case d.Hash() == f.State.Hash:
		return nil // the run was migrated to it
	}
	return o.edited(&f.Run, d, o.File)
}

// again continues a run that exists; a finished one is not run again.
func (o *runOptions) again(ctx context.Context, at *place, r *Run) error {
	name := r.Namespace + "/" + r.Name
	phase := r.Phase()
	switch {
	case Finished(phase):
		return cli.Usagef("run %s exists already and has ended: it is %s. Delete it (kubectl delete workflowrun %s -n %s) and run this again, or choose another name", name, phase, r.Name, r.Namespace)
	case !Rests(phase):
		o.Env.Notef("run %s exists already and is %s: following it", name, phase)
		return nil
	}
	f, err := o.fold(ctx, at, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if err != nil {
		return err
	}
	if !freshWord(f) {
		actor, err := o.tell(ctx, at, f, workflow.ResumeRun{})
		if err != nil {
			return fmt.Errorf("run %s: %w", f.ID, err)
		}
		o.Env.Notef("Continuing run %s, which was %s: what is done is skipped (resumed by %s).", f.ID, phase, actor)
	}
	return o.awake(ctx, at, f)
}
