package run

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

const policyVariable = "SCUTE_DEFAULT_FAILURE_POLICY"

func (d *deps) defaultPolicy(flag string) (v1alpha1.FailurePolicy, error) {
	name, value := "--default-failure-policy", flag
	if value == "" {
		name, value = policyVariable, d.Env.Getenv(policyVariable)
	}
	if value != "" && !slices.Contains(workflow.FailurePolicies(), value) {
		return "", cli.Usagef("%s is %q: it must be one of %s", name, value, strings.Join(workflow.FailurePolicies(), ", "))
	}
	return v1alpha1.FailurePolicy(value), nil
}

// policyVar adds --default-failure-policy. more is appended to the help text of the flag.
func policyVar(cmd *cobra.Command, policy *string, more string) {
	cmd.Flags().StringVar(policy, "default-failure-policy", "", "Failure policy if the manifest has none: "+strings.Join(workflow.FailurePolicies(), ", ")+"; "+policyVariable+" or Abort if empty"+more)
	_ = cmd.RegisterFlagCompletionFunc("default-failure-policy", cobra.FixedCompletions(workflow.FailurePolicies(), cobra.ShellCompDirectiveNoFileComp))
}

// environment returns the environment of a local run. Its tasks use the operator's kubeconfig,
// which is read only when a task needs it, and they can run commands on this machine. log is nil if
// a manifest is only checked.
func (d *deps) environment(log aggregate.Log, incarnation string, policy v1alpha1.FailurePolicy) *manifest.Env {
	return d.workflowEnv(tasks.Options{Clusters: d.clusters(), Log: log, Incarnation: incarnation, Local: true, ExecEnabled: true}, policy)
}

func (d *deps) clusters() *access.Clusters {
	return &access.Clusters{Local: true, Own: func() (*rest.Config, error) {
		c, err := d.Flags.Cluster()
		if err != nil {
			return nil, err
		}
		return c.Config, nil
	}}
}

func (d *deps) workflowEnv(o tasks.Options, policy v1alpha1.FailurePolicy) *manifest.Env {
	kinds := tasks.Kinds(o)
	dir := filepath.Join(cmp.Or(d.Flags.Dir, connect.LocalDir), "clusters")
	return &manifest.Env{
		Kinds: kinds, DefaultPolicy: policy,
		NamedWorkflow: func(ctx context.Context, namespace, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
			return lifecycle.New(ctx, name, params, lifecycle.Deps{Clusters: o.Clusters, Kinds: kinds, Namespace: namespace, Dir: dir})
		},
	}
}
