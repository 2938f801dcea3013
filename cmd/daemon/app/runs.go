package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/internal/fair"
	"scute.dev/kube/guard"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

// runPages limits how many pages of lists are in memory: once for pages of this cluster, and once
// for pages of all other clusters.
const runPages = 2

// newEnv returns the environment of runs. Tasks have the permissions of the run's ServiceAccount,
// never those of the daemon.
func newEnv(o Options, config *rest.Config, held *tenure, g *guard.Guard, log aggregate.Log, incarnation string) *manifest.Env {
	clusters := &access.Clusters{
		Own: func() (*rest.Config, error) { return config, nil }, Guard: g, Wrap: held.fence, Pages: fair.NewSlots(runPages), OtherPages: fair.NewSlots(runPages),
	}
	kinds := tasks.Kinds(tasks.Options{Clusters: clusters, Log: log, Incarnation: incarnation, ExecEnabled: o.EnableExec})
	return &manifest.Env{
		Kinds: kinds, DefaultPolicy: v1alpha1.FailurePolicy(o.DefaultFailurePolicy), CheckReads: true,
		NamedWorkflow: func(ctx context.Context, namespace, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
			return lifecycle.New(ctx, name, params, lifecycle.Deps{Clusters: clusters, Kinds: kinds, Namespace: namespace, Dir: o.runDir("named")})
		},
	}
}

func newRunner(o Options, env *manifest.Env, log aggregate.Log, incarnation string, logger *slog.Logger) *runner.Runner {
	return &runner.Runner{
		Log: log, Incarnation: incarnation, Parallel: o.RunParallel, Dir: o.runDir, Logger: logger, Slots: fair.NewSlots(o.RunConcurrency),
		Adopted: func(context.Context, string) (string, error) { return "", nil }, // replaced when the daemon can read WorkflowRuns
		Kinds: func(ctx context.Context, h workflow.Header) (task.Kinds, error) {
			kinds, err := env.KindsFor(ctx, h)
			if err == nil && !o.EnableExec {
				// A run that another program started may have Exec tasks. It waits for a daemon that may run
				// them.
				kinds = maps.Clone(kinds)
				delete(kinds, "Exec")
			}
			return kinds, err
		},
	}
}

// runDir returns the folder for the files of a run. With an external log it returns "", because a
// process on another machine may continue the run.
func (o *Options) runDir(id string) string {
	if o.Log.Dir == "" {
		return ""
	}
	return filepath.Join(o.Log.Dir, "runs", filepath.FromSlash(id))
}

// adoptedRun returns a function that reads what the WorkflowRun of a run has adopted: a Digest, or
// "".
func adoptedRun(c client.Reader) func(ctx context.Context, id string) (string, error) {
	return func(ctx context.Context, id string) (string, error) {
		namespace, rest, _ := strings.Cut(id, "/")
		name, _, _ := strings.Cut(rest, "/")
		var w v1alpha1.WorkflowRun
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &w); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		if of, _, err := w.LogID(); err != nil || of != id {
			return "", nil //nolint:nilerr // the WorkflowRun belongs to another run
		}
		return w.Annotations[v1alpha1.AdoptedAnnotation], nil
	}
}
