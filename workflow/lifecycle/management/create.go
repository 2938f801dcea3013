package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewCreate constructs the workflow that creates a management cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster) (task.NamedWorkflow, []workflow.Problem) {
	start := sequence.Begin(d.Clusters, Specified{Cluster: spec})
	start = sequence.Then(start, sequence.NoOp(PreCreate))
	boot := sequence.Then(start, d.createBootstrapCluster())
	boot = sequence.Then(boot, sequence.On(InstallBootstrapComponents, provider.ComponentsTimeout,
		(*Bootstrapped).bootstrap, p.InstallComponents, p.UninstallComponents))
	both := sequence.Then(boot, provider.CreateStep(CreateManagementCluster, &d.Deps, p, (*Bootstrapped).onBootstrap,
		func(c Bootstrapped, created access.ClusterRef) Paired {
			return Paired{Managed: Managed{Specified: c.Specified, Management: created}, Bootstrap: c.Bootstrap}
		}))
	both = sequence.Then(both, provider.NetworkStep(InstallNetworking, p, (*Paired).management, (*Paired).onBootstrap))
	both = sequence.Then(both, sequence.On(InstallManagementComponents, provider.ComponentsTimeout,
		(*Paired).management, p.InstallComponents, p.UninstallComponents))
	both = sequence.Then(both, d.pivotToManagement())
	both = sequence.Then(both, sequence.On(InstallClusterConfiguration, provider.ComponentsTimeout,
		(*Paired).management, p.InstallConfiguration, p.UninstallConfiguration))
	alone := sequence.Then(both, d.deleteBootstrapCluster(p))
	alone = sequence.Then(alone, sequence.NoOp(PostCreate))
	return sequence.Bind(alone, d.Registrars, p, HookRegistrar.BindManagementCreate)
}
