package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	provider.Deps
	// Registrars bind hooks.
	Registrars []HookRegistrar
}

// NewCreate constructs the workflow that creates a workload cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	start := provider.Begin(d.Clusters, Managed{Cluster: spec, Management: management})
	start = provider.Then(start, provider.NoOp(PreCreate))
	s := provider.Then(start, provider.CreateStep(CreateWorkloadCluster, &d.Deps, p, (*Managed).target,
		func(c Managed, created access.ClusterRef) Connected { return Connected{Managed: c, Workload: created} }))
	s = provider.Then(s, provider.NetworkStep(InstallNetworking, p, (*Connected).workload, (*Connected).target))
	s = provider.Then(s, provider.On(InstallComponents, provider.ComponentsTimeout,
		(*Connected).workload, p.InstallComponents, p.UninstallComponents))
	s = provider.Then(s, provider.NoOp(PostCreate))
	return provider.Bind(s, d.Registrars, p, HookRegistrar.BindWorkloadCreate)
}
