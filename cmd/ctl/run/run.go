package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
	"scute.dev/workflow"
	"scute.dev/workflow/manifest"
)

type runOptions struct {
	*deps
	File     string
	Policy   string
	Parallel int
	Wait     bool
	Diagnose bool
	Format   cli.Format
}

// NewCmdRun returns `run -f FILE`.
func NewCmdRun(env *cli.Env, options Options) *cobra.Command {
	o := &runOptions{deps: &deps{noun: newNoun(), Options: options}}
	cmd := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Run a workflow, or continue it where it stopped",
		Long: `Run a workflow, or continue it where it stopped, and follow it until it ends or waits for an operator.

With --local the run is driven by this process, without a cluster, and recorded in an event log in a folder
(` + connect.LocalDir + ` in the current folder, or --log). Without --local a WorkflowRun is created, and the daemon drives it.

Run the same command again to resume an unfinished run of that name: one that was aborted, paused, interrupted, or whose
process was killed. Finished tasks are skipped, and their recorded outputs are used. A finished run is not resumed: locally a new
run starts; in a cluster delete the WorkflowRun first, or choose another name. If the manifest was edited since, the command is refused, and
shows the plan by which migrate would adopt the manifest.

When a task of a local run fails for good, the objects of its clusters, their conditions, events, and logs of unhealthy pods are
collected below the log's folder, without secrets: see the kind Diagnose. A handler of this kind in the manifest replaces it.

If the manifest is not valid, all its problems are shown and nothing is started.

Exit status: 0 Succeeded; 1 Failed, Aborted, RolledBack, RollbackFailed or Stranded; 2 the command line or the manifest
is wrong, and nothing was started; 3 Paused; 4 Degraded, tasks were ignored or skipped by policy; 130 interrupted:
run the same command again to resume.`,
		Example: kit.Examples(env, "$ run -f create.yaml --local",
			`$ run -f create.yaml --local --log /var/lib/runs -o json | jq '.tasks[] | select(.phase == "Failed")'`, "$ run -f upgrade.yaml -n fleet"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("unexpected argument %q: name the manifest with -f", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Kit = kit.New(env, cmd, "run")
	f := cmd.Flags()
	f.StringVarP(&o.File, "file", "f", "", "Manifest of the WorkflowRun; - is the standard input")
	policyVar(cmd, &o.Policy, ". Local runs")
	o.trustVar(f)
	f.IntVar(&o.Parallel, "parallel", 0, "How many tasks may run at once; 16 if not set. Local runs")
	f.BoolVar(&o.Diagnose, "diagnostics", true, "Collect objects, conditions, events and logs of the clusters when a task fails. Local runs")
	f.BoolVar(&o.Wait, "wait", true, "Follow the run until it ends or waits for an operator. Runs in a cluster")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *runOptions) run(ctx context.Context) error {
	policy, err := o.validate()
	if err != nil {
		return err
	}
	w, problems, err := o.readManifest(o.File)
	if err != nil {
		return err
	}
	if err := o.setNamespace(w); err != nil {
		return err
	}
	if o.Flags.Local {
		return o.runLocal(ctx, w, problems, policy)
	}
	return o.runInCluster(ctx, w, problems)
}

func (o *runOptions) validate() (v1alpha1.FailurePolicy, error) {
	switch {
	case o.File == "":
		return "", cli.Usagef("-f is missing: name the manifest of the WorkflowRun, or - for the standard input")
	case o.Parallel < 0:
		return "", cli.Usagef("--parallel is %d: it must be greater than zero", o.Parallel)
	case !o.Flags.Local && o.Flags.Dir != "":
		return "", cli.Usagef("--log needs --local: a run in a cluster is in the daemon's log")
	case !o.Flags.Local && (o.Policy != "" || o.Parallel > 0):
		return "", cli.Usagef("--default-failure-policy and --parallel need --local: in a cluster they are flags of the daemon, or set spec.failurePolicy")
	case o.Flags.Local && !o.Wait:
		return "", cli.Usagef("--wait=false and --local cannot be used together: a local run is driven by this process")
	}
	if err := o.Flags.Check(); err != nil {
		return "", err
	}
	return o.defaultPolicy(o.Policy)
}

// setNamespace sets the namespace of the run: that of the manifest, else the value of -n, else
// "default" for a local run.
func (o *runOptions) setNamespace(w *v1alpha1.WorkflowRun) error {
	if o.Flags.Namespace != "" && w.Namespace != "" && o.Flags.Namespace != w.Namespace {
		return cli.Usagef("-n is %s and metadata.namespace is %s: remove one of the two", o.Flags.Namespace, w.Namespace)
	}
	if w.Namespace == "" {
		w.Namespace = o.Flags.Namespace
	}
	if w.Namespace == "" && o.Flags.Local {
		w.Namespace = "default"
	}
	return nil
}

// readManifest reads a manifest. If the manifest cannot be decoded, it prints the problems and
// returns an error.
func (d *deps) readManifest(file string) (*v1alpha1.WorkflowRun, []workflow.Problem, error) {
	w, problems, err := Manifest(file, d.Env.In)
	switch {
	case err != nil:
		return nil, nil, cli.Usagef("%w", err)
	case w == nil:
		return nil, nil, d.report(problems)
	}
	return w, problems, nil
}

// definition returns the definition of a manifest. If the manifest has problems, it prints them and
// returns an error.
func (d *deps) definition(ctx context.Context, env *manifest.Env, namespace string, w *v1alpha1.WorkflowRun, problems []workflow.Problem) (*workflow.Definition, error) {
	to, more, err := env.Definition(ctx, namespace, w.Name, &w.Spec)
	if err != nil {
		return nil, cli.Usagef("reading what the manifest refers to: %w", err)
	}
	return to, d.report(mergeProblems(problems, more))
}

// report prints problems and returns an error if one of them is more than a warning.
func (d *deps) report(problems []workflow.Problem) error {
	refused, prefix, n := hasErrors(problems), "warning: ", 0
	if refused {
		prefix = ""
	}
	for _, p := range problems {
		if p.Warning != refused {
			d.Env.Notef("%s%s", prefix, p)
			n++
		}
	}
	if !refused {
		return nil
	}
	d.Env.Notef("%s: the manifest has %s: nothing was started", d.Env.Name, view.Count(n, "problem"))
	return cli.SilentExit(cli.ExitUsage)
}

func hasErrors(problems []workflow.Problem) bool {
	return slices.ContainsFunc(problems, func(p workflow.Problem) bool { return !p.Warning })
}

// finish prints the state of an idle run, and returns its exit status.
func finish(k *kit.Kit, r *Run, format *cli.Format) error {
	if format.Data() {
		// A closed pipe does not change the exit status of the run.
		if err := format.Print(k.Env.Out, r.report()); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
	}
	s := r.Status
	text := fmt.Sprintf("run %s: %s", r.ID, r.Phase())
	if r.ID == "" {
		text = fmt.Sprintf("run %s/%s: %s", r.Namespace, r.Name, r.Phase())
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	k.Env.Notef("%s", text)
	if s.Next != "" {
		k.Env.Notef("Next: %s", s.Next)
	}
	for _, line := range nextCommands(k, r) {
		k.Env.Notef("  %s", line)
	}
	if r.refused() {
		return cli.SilentExit(cli.ExitUsage)
	}
	return cli.SilentExit(exitCode(r.Phase()))
}
