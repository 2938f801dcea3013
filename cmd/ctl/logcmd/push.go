package logcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/push"
	"scute.dev/cmd/ctl/run"
	"scute.dev/workflow"
)

type pushOptions struct {
	deps
	Run, File string
	Resource  bool
}

func newCmdPush(env *cli.Env) *cobra.Command {
	o := &pushOptions{}
	cmd := &cobra.Command{
		Use:   "push --log FOLDER --run NAME",
		Short: "Hand a local run over to the log of a cluster, where it continues",
		Long: `Hand a local run over to the log of a cluster, where it continues: with all that is done, each event with its time and its
author. A first management cluster is created by a local run, for example; when it is there, its history belongs to it.

The run is sealed in the folder, its commits are copied, a WorkflowRun is made that shows it, and the daemon continues it
if it is not over. Done again it completes what was cut off. The log there is the daemon's in the cluster of the
kubeconfig, or that of a NATS server (--nats).

The daemon acts with the permissions of spec.serviceAccountName, and with no files of this machine: a run that needs
them ends there with an error that says so.`,
		Example: kit.Examples(env, "$ log push --log .scute --run create-prod --kubeconfig prod.kubeconfig"),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Kit = kit.New(env, cmd, "run")
	cmd.Flags().Lookup("namespace").Usage = "Namespace of the run; that in which it is found if empty"
	cmd.Flags().StringVar(&o.Run, "run", "", "Name of the run")
	cmd.Flags().StringVarP(&o.File, "file", "f", "", "Manifest that the WorkflowRun is to show; made of the run's definition if empty")
	cmd.Flags().BoolVar(&o.Resource, "resource", true, "Make the WorkflowRun that shows the run")
	return cmd
}

func (o *pushOptions) run(ctx context.Context) error {
	switch {
	case o.Flags.Dir == "" && !o.Flags.Local:
		return cli.Usagef("--log is missing: name the folder that the local run is in, for example .scute")
	case o.Flags.Dir == "":
		o.Flags.Dir = connect.LocalDir
	}
	o.Flags.Local = false // it says where the run is, and the log of the cluster is another one
	if o.Run == "" {
		return cli.Usagef("--run is missing: name the run; %s lists them", o.Env.Hint("get", "runs", "--log", o.Flags.Dir))
	}
	from, to := *o.Flags, *o.Flags
	from.URL, from.Creds, from.CA, from.Cert, from.Key, from.Stream = "", "", "", "", "", ""
	to.Dir = ""
	if err := errors.Join(from.Check(), to.Check()); err != nil {
		return err
	}
	spec, err := o.spec()
	if err != nil {
		return err
	}
	here, err := from.Log(ctx, o.Env.Err)
	if err != nil {
		return err
	}
	defer here.Close()
	if !here.Static {
		return fmt.Errorf("a process drives runs in %s: let it come to rest, or interrupt it, and push then", here.Where)
	}
	id, err := run.InLog(here).ID(ctx, types.NamespacedName{Namespace: o.Flags.Namespace, Name: o.Run})
	if err != nil {
		return err
	}
	var cluster *connect.Cluster
	if o.Resource {
		if cluster, err = to.Cluster(); err != nil {
			return fmt.Errorf("%w; or leave the WorkflowRun out with --resource=false", err)
		}
	}
	there, err := to.LogToAppend(ctx, o.Env.Err)
	if err != nil {
		return err
	}
	defer there.Close()
	return o.push(ctx, id, here, there, cluster, spec)
}

// spec of the manifest, if one was given.
func (o *pushOptions) spec() (*v1alpha1.WorkflowRunSpec, error) {
	if o.File == "" {
		return nil, nil
	}
	w, problems, err := run.Manifest(o.File, o.Env.In)
	switch {
	case err != nil:
		return nil, cli.Usagef("%w", err)
	case len(problems) > 0:
		return nil, cli.Usagef("%s", problems[0])
	case w.Name != o.Run:
		return nil, cli.Usagef("%s is the manifest of %s, not of %s", o.File, w.Name, o.Run)
	}
	return &w.Spec, nil
}

func (o *pushOptions) push(ctx context.Context, id string, here, there *connect.Log, cluster *connect.Cluster, spec *v1alpha1.WorkflowRunSpec) error {
	progress := o.Env.Progress()
	dir, err := filepath.Abs(here.Where)
	if err != nil {
		dir = here.Where
	}
	p := &push.Push{
		From: here.Log, To: there.Log, Run: id, Actor: connect.Actor(ctx, cluster), FromName: "folder " + filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir), ToName: name(there, cluster),
		Copied: func(done, all int) { progress.Showf("copying: commit %d of %d", done, all) },
	}
	state, err := p.Check(ctx)
	if err != nil {
		return err
	}
	digest, err := p.Digest(ctx)
	if err != nil {
		return err
	}
	if cluster != nil {
		if err := o.resource(ctx, cluster, id, digest, state, spec); err != nil {
			return err
		}
	}
	before, err := p.Do(ctx)
	progress.Done()
	if err != nil {
		return err
	}
	if before > 0 {
		o.Env.Notef("%d commits were there from an earlier try.", before)
	}
	err = o.Env.Linef("run %s: handed over to %s", id, p.ToName)
	if cluster == nil {
		o.Env.Notef("A daemon continues it when a WorkflowRun %s/%s has the annotations %s: %s and %s: %s", state.Namespace, state.Name, v1alpha1.RunAnnotation, id, v1alpha1.AdoptedAnnotation, digest)
	} else {
		follow := *o.Flags
		follow.Dir = ""
		o.Env.Notef("Follow it there: %s", (&kit.Kit{Env: o.Env, Flags: &follow}).Hint(state.Namespace, "watch", "run", state.Name))
	}
	return err
}

// name of the log there: the same for the same one, and without a password.
func name(there *connect.Log, cluster *connect.Cluster) string {
	where := there.Where
	if cluster != nil {
		where = cluster.Config.Host
	}
	if u, err := url.Parse(where); err == nil && u.Host != "" {
		return u.Host
	}
	return where
}

// resource makes the WorkflowRun that shows the run. The controller waits until the run is in the log.
func (o *pushOptions) resource(ctx context.Context, cluster *connect.Cluster, id, digest string, state *workflow.State, spec *v1alpha1.WorkflowRunSpec) error {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	if spec == nil {
		made := push.Spec(state.Definition())
		spec = &made
	}
	w := &v1alpha1.WorkflowRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: state.Namespace, Name: state.Name, Annotations: map[string]string{v1alpha1.RunAnnotation: id, v1alpha1.AdoptedAnnotation: digest}},
		Spec:       *spec,
	}
	err := cluster.Client.Create(ctx, w)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			err = fmt.Errorf("making the WorkflowRun %s/%s: %w", w.Namespace, w.Name, cluster.Explain(err))
		}
		return err
	}
	var found v1alpha1.WorkflowRun
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(w), &found); err != nil {
		return fmt.Errorf("reading the WorkflowRun %s/%s, which exists already: %w", w.Namespace, w.Name, cluster.Explain(err))
	}
	if found.Annotations[v1alpha1.RunAnnotation] != id {
		return fmt.Errorf("the WorkflowRun %s/%s exists already and is another run: delete it there, then push again", w.Namespace, w.Name)
	}
	before := found.DeepCopy() // of an earlier try, or pushed by an earlier version
	found.Annotations[v1alpha1.AdoptedAnnotation] = digest
	if err := cluster.Client.Patch(ctx, &found, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the annotations of WorkflowRun %s/%s: %w", w.Namespace, w.Name, cluster.Explain(err))
	}
	return nil
}
