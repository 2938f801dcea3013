package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/management"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/workload"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/diagnose"
)

// The names of the workflows.
const (
	ManagementCreate  = "management-create"
	ManagementUpgrade = "management-upgrade"
	ManagementDelete  = "management-delete"
	WorkloadCreate    = "workload-create"
	WorkloadUpgrade   = "workload-upgrade"
	WorkloadDelete    = "workload-delete"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	// Clusters opens API servers; its Local field is set for a local run.
	Clusters *access.Clusters
	// Kinds are the engine's task kinds. The workflows use Apply, Move, Providers and Pause.
	Kinds     task.Kinds
	Namespace string
	// Dir is the directory of a local run, with kubeconfigs (mode 0600) for later processes.
	Dir string
	// Providers are the providers by name, in addition to "manifests".
	Providers  map[string]Factory
	Management []management.HookRegistrar
	Workload   []workload.HookRegistrar
}

// Factory returns a provider, which implements the interfaces of the workflows that it supports,
// such as management.CreateProvider. The fields of its problems begin with "spec.workflow.params".
type Factory func(p Params, cluster provider.Cluster, deps *Deps) (any, []workflow.Problem)

// New checks the parameters of a workflow and constructs its tasks and their kinds. If a problem is
// more than a warning, the tasks must not run. New is called again on every resume and must return
// the same tasks, so the result depends only on the arguments.
func New(_ context.Context, name string, params json.RawMessage, deps Deps) (task.NamedWorkflow, []workflow.Problem) {
	names := []string{ManagementCreate, ManagementUpgrade, ManagementDelete, WorkloadCreate, WorkloadUpgrade, WorkloadDelete}
	if !slices.Contains(names, name) {
		return task.NamedWorkflow{}, []workflow.Problem{{
			Field: "spec.workflow.name", Message: fmt.Sprintf("there is no workflow %q", name), Remedy: "use one of " + strings.Join(names, ", "),
		}}
	}
	p, problems := decode(params)
	if p.Cluster.Namespace == "" {
		p.Cluster.Namespace = deps.Namespace
	}
	c := &checker{name: name, params: &p, deps: &deps, problems: problems}
	c.check()
	spec := p.Cluster.Cluster
	if c.hasVerb("upgrade") {
		spec.Version = p.Upgrade.Version
	}
	made := c.newProvider(spec)
	boot := c.newBootstrap()
	if made == nil {
		return task.NamedWorkflow{}, c.problems
	}
	config := &configWriter{provider: made}
	if p.WriteConfig != nil { // first, so that the other hooks can read the configuration
		config.sink = *p.WriteConfig
		deps.Management = append([]management.HookRegistrar{config}, deps.Management...)
		deps.Workload = append([]workload.HookRegistrar{config}, deps.Workload...)
	}
	named, problems := construct(c, spec, made, boot, config)
	named.Read = func(ctx context.Context, call *task.Call) ([]workflow.Problem, error) {
		return c.checkReadable(ctx, call, made)
	}
	named.Diagnose = c.diagnoseInputs(named.Tasks)
	return named, append(c.problems, problems...)
}

// construct returns the workflow, or a problem if the provider does not support the workflow.
func construct(c *checker, spec provider.Cluster, made any, boot management.Bootstrap, config *configWriter) (task.NamedWorkflow, []workflow.Problem) {
	p, deps := c.params, c.deps
	var manager access.ClusterRef
	if p.Management != nil {
		manager = *p.Management
	}
	common := provider.Deps{
		Clusters: deps.Clusters, Apply: deps.Kinds["Apply"], Folder: deps.kubeconfigDir(), Pause: p.Pause,
		WriteConfig: config.writeUpgraded, RestoreConfig: config.restore,
	}
	m := management.Deps{Deps: common, Move: deps.Kinds["Move"], Bootstrap: boot, InPlace: !c.usesPivot(), Registrars: deps.Management}
	w := workload.Deps{Deps: common, Registrars: deps.Workload}
	switch c.name {
	case ManagementCreate:
		if made, ok := made.(management.CreateProvider); ok {
			return management.NewCreate(m, made, spec)
		}
	case ManagementUpgrade:
		if made, ok := made.(management.UpgradeProvider); ok {
			return management.NewUpgrade(m, made, spec, manager)
		}
	case ManagementDelete:
		if made, ok := made.(management.DeleteProvider); ok {
			return management.NewDelete(m, made, spec, manager)
		}
	case WorkloadCreate:
		if made, ok := made.(workload.CreateProvider); ok {
			return workload.NewCreate(w, made, spec, manager)
		}
	case WorkloadUpgrade:
		if made, ok := made.(workload.UpgradeProvider); ok {
			return workload.NewUpgrade(w, made, spec, manager)
		}
	case WorkloadDelete:
		return workload.NewDelete(w, made, spec, manager)
	}
	return task.NamedWorkflow{}, []workflow.Problem{{
		Field: paramsField + ".provider", Message: fmt.Sprintf("the provider %q does not support %s", p.Provider, c.name), Remedy: "choose another provider",
	}}
}

// kubeconfigDir returns the directory as an absolute path, because a later process may have another
// working directory.
func (d *Deps) kubeconfigDir() string {
	folder := filepath.Join(d.Dir, "kubeconfigs")
	if abs, err := filepath.Abs(folder); err == nil {
		return abs
	}
	return folder
}

const manifestsProvider = "manifests"

func (c *checker) newProvider(spec provider.Cluster) (made any) {
	p := c.params
	if p.Provider == "" {
		p.Provider = manifestsProvider
	}
	p.isUpgrade = c.hasVerb("upgrade")
	var problems []workflow.Problem
	factory, ok := c.deps.Providers[p.Provider]
	switch {
	case ok:
		made, problems = factory(*p, spec, c.deps)
	case p.Provider == manifestsProvider:
		if !c.hasVerb("delete") && p.Cluster.Template == nil && p.Upgrade.Template == nil {
			c.addProblem("cluster.template", "it is empty", "set the template of the cluster's objects: inline, file, configMapRef or secretRef")
		}
		made, problems = NewManifestProvider(*p, spec, c.deps)
	default:
		known := append(slices.Sorted(maps.Keys(c.deps.Providers)), manifestsProvider)
		c.addProblem("provider", fmt.Sprintf("there is no provider %q", p.Provider), "use one of "+strings.Join(known, ", "))
	}
	c.problems = append(c.problems, problems...)
	return made
}

func (c *checker) newBootstrap() management.Bootstrap {
	p := c.params.Bootstrap
	switch {
	case !c.usesPivot() || p == nil:
	case (p.Cluster == nil) == (p.Kind == nil):
		c.addProblem("bootstrap", "exactly one of bootstrap.cluster and bootstrap.kind must be set",
			"set bootstrap.cluster to an existing cluster, or bootstrap.kind to create one")
	case p.Kind != nil && !c.deps.Clusters.IsLocal():
		c.addProblem("bootstrap.kind", "only a local run can create a bootstrap cluster",
			"run it with `scutectl run --local`, or name a cluster in bootstrap.cluster")
	default:
		return p.New(c.deps.kubeconfigDir())
	}
	return nil
}

// diagnoseInputs returns the inputs of a Diagnose handler. They name all clusters that may have the
// cluster's objects when a task fails.
func (c *checker) diagnoseInputs(tasks []v1alpha1.TaskSpec) json.RawMessage {
	spec := &c.params.Cluster
	with := diagnose.With{Namespace: spec.Namespace, Clusters: []string{spec.Name}}
	if c.params.Management != nil {
		with.Cluster = *c.params.Management
	}
	of := func(task, otherwise string) access.ClusterRef {
		return access.ClusterRef{Kubeconfig: "${tasks." + task + ".output.cluster.kubeconfig:-" + otherwise + "}"}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(tasks, func(t v1alpha1.TaskSpec) bool { return t.Name == name })
	}
	switch {
	case c.name == ManagementCreate: // the run's own cluster has none of the objects
		with.Cluster = of("create-bootstrap-cluster", "no bootstrap cluster")
		with.Others = []access.ClusterRef{of("create-management-cluster", "")}
	case has("create-bootstrap-cluster"):
		with.Others = []access.ClusterRef{of("create-bootstrap-cluster", "")}
	case c.name == WorkloadCreate:
		with.Others = []access.ClusterRef{of("create-workload-cluster", "")}
	case c.name == WorkloadUpgrade:
		with.Others = []access.ClusterRef{of("pre-upgrade", "")}
	}
	data, _ := json.Marshal(with) // strings can always be encoded
	return data
}
