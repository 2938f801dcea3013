package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewCreate constructs the workflow that creates a management cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster) (task.NamedWorkflow, []workflow.Problem) {
	start := provider.Begin(d.Clusters, Specified{Cluster: spec})
	start = provider.Then(start, provider.NoOp(PreCreate))
	boot := provider.Then(start, d.createBootstrapCluster())
	boot = provider.Then(boot, provider.On(InstallBootstrapComponents, provider.ComponentsTimeout,
		(*Bootstrapped).onBootstrap, p.InstallComponents, p.UninstallComponents))
	both := provider.Then(boot, provider.CreateStep(CreateManagementCluster, &d.Deps, p, (*Bootstrapped).onBootstrap,
		func(c Bootstrapped, created access.ClusterRef) Paired {
			return Paired{Managed: Managed{Specified: c.Specified, Management: created}, Bootstrap: c.Bootstrap}
		}))
	both = provider.Then(both, provider.NetworkStep(InstallNetworking, p, (*Paired).onManagement, (*Paired).onBootstrap))
	both = provider.Then(both, provider.On(InstallManagementComponents, provider.ComponentsTimeout,
		(*Paired).onManagement, p.InstallComponents, p.UninstallComponents))
	both = provider.Then(both, d.pivotToManagement())
	both = provider.Then(both, provider.On(InstallClusterConfiguration, provider.ComponentsTimeout,
		(*Paired).onManagement, p.InstallConfiguration, p.UninstallConfiguration))
	alone := provider.Then(both, d.deleteBootstrapCluster(p))
	alone = provider.Then(alone, provider.NoOp(PostCreate))
	return provider.Bind(alone, d.Registrars, p, HookRegistrar.BindManagementCreate)
}
