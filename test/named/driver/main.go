// Driver runs a named workflow with the in-memory provider and hooks. Otherwise it works as scutectl run --local. Its
// exit status is 0 if the run succeeds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog/embedded"
	"scute.dev/test/inmemory"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/management"
	"scute.dev/workflow/lifecycle/workload"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

func main() { os.Exit(code()) }

func code() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("driver", flag.ContinueOnError) // controller-runtime registers flags in the common set
	file := flags.String("f", "", "manifest of the WorkflowRun")
	dir := flags.String("log", "", "folder of the log")
	kubeconfig := flags.String("kubeconfig", "", "of the run's own cluster")
	err := flags.Parse(os.Args[1:])
	if err == nil {
		err = run(ctx, *file, *dir, *kubeconfig)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, file, dir, kubeconfig string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var w v1alpha1.WorkflowRun
	if err := yaml.UnmarshalStrict(data, &w); err != nil {
		return err
	}
	log, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer log.Close()
	incarnation := fmt.Sprintf("driver-%d", os.Getpid())
	clusters := &access.Clusters{Local: true, Own: func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }}
	kinds := tasks.Kinds(tasks.Options{Clusters: clusters, Log: log, Incarnation: incarnation, Local: true, ExecEnabled: true})
	env := &manifest.Env{Kinds: kinds, NamedWorkflow: func(ctx context.Context, namespace, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
		return lifecycle.New(ctx, name, params, lifecycle.Deps{
			Clusters: clusters, Kinds: kinds, Namespace: namespace, Dir: filepath.Join(dir, "state"),
			Providers:  map[string]lifecycle.Factory{inmemory.Name: inmemory.New},
			Management: []management.HookRegistrar{managementHooks{}}, Workload: []workload.HookRegistrar{workloadHooks{}},
		})
	}}
	d, problems, err := env.Definition(ctx, w.Namespace, w.Name, &w.Spec)
	if err != nil {
		return err
	}
	if d == nil {
		return fmt.Errorf("the definition is not valid: %v", problems)
	}
	r := &runner.Runner{
		Log: log, Incarnation: incarnation, Kinds: env.KindsFor, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Dir: func(string) string { return filepath.Join(dir, "run") },
	}
	return drive(ctx, r, w.Namespace+"/"+w.Name, d)
}

func drive(ctx context.Context, r *runner.Runner, id string, d *workflow.Definition) error {
	s, _, err := r.State(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !s.IsDefined():
		err = r.Request(ctx, id, "user/test", d)
	case workflow.CurrentPhase(s) == v1alpha1.RunRollingBack: // continues by itself
	default:
		err = r.Command(ctx, id, "user/test", workflow.ResumeRun{Reason: "the driver was started again", ProcessDied: true})
	}
	if err != nil {
		return err
	}
	if err := r.Drive(ctx, id); err != nil {
		return err
	}
	s, _, err = r.State(ctx, id)
	if err != nil {
		return err
	}
	phase := workflow.CurrentPhase(s)
	fmt.Println("phase:", phase)
	if phase != v1alpha1.RunSucceeded {
		message, next := workflow.Explain(s)
		return errors.New(message + ": " + next)
	}
	return nil
}

// managementHooks and workloadHooks record what they receive in their contexts as progress in the log.
type (
	managementHooks struct{ management.NoopHookRegistrar }
	workloadHooks   struct{ workload.NoopHookRegistrar }
)

func (managementHooks) Name() string { return "witness" }
func (workloadHooks) Name() string   { return "witness" }

func (managementHooks) BindManagementCreate(b *hook.Binder) error {
	return errors.Join(
		hook.After(b, management.CreateBootstrapCluster, func(c *management.Bootstrapped) error {
			return see(c.Call(), "bootstrap", c.Bootstrap)
		}),
		hook.After(b, management.PostCreate, func(c *management.Managed) error { return see(c.Call(), "management", c.Management) }),
		hook.OnFailure(b, func(c *management.Specified) error {
			return write(c.Call(), "failures", c.Cluster.Name+" "+c.Failure().Task+" "+c.Failure().Cause)
		}))
}

func (workloadHooks) BindWorkloadCreate(b *hook.Binder) error {
	return hook.After(b, workload.CreateWorkloadCluster, func(c *workload.Connected) error {
		return see(c.Call(), "workload", c.Workload)
	})
}

// see writes the cluster that a hook received to the run's folder.
func see(c *task.Call, what string, ref access.ClusterRef) error {
	data, err := json.Marshal(ref)
	if err != nil {
		return err
	}
	return write(c, "witness", what+" "+string(data))
}

// write appends a line to a file in the run's folder.
func write(c *task.Call, name, line string) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}
