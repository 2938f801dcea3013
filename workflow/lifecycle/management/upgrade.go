package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a management cluster to the specification's version. The result depends only on the arguments.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	s := provider.Begin(d.Clusters, Managed{Specified: Specified{Cluster: spec}, Management: management})
	s = provider.Then(s, preUpgrade(p))
	s = provider.WithPause(s, d.Pause)
	s = provider.Then(s, provider.On(UpgradeManagementComponents, provider.ComponentsTimeout,
		(*Managed).onManagement, p.UpgradeComponents, p.RestoreComponents))
	s = provider.Then(s, provider.On(UpgradeNetworking, provider.NetworkTimeout,
		(*Managed).onManagement, p.UpgradeNetworking, p.RestoreNetworking))
	s = provider.Then(s, provider.On(UpgradeInstallManagementComponents, provider.ComponentsTimeout,
		(*Managed).onManagement, p.InstallComponents, p.UninstallComponents))
	upgradeCluster := provider.UpgradeStep(UpgradeCluster, &d.Deps, p, (*Paired).onBootstrap, (*Paired).onManagement)
	if d.InPlace {
		both := provider.Convert(s, func(c Managed) Paired { return Paired{Managed: c, Bootstrap: c.Management} })
		both = provider.Then(both, upgradeCluster)
		s = provider.Convert(both, func(c Paired) Managed { return c.Managed })
	} else {
		both := provider.Then(s, provider.IfNeeded(d.addBootstrapCluster(), func(c *Managed, reason string) (provider.Access, error) {
			return provider.Access{Cluster: &c.Management, Skipped: reason}, nil
		}))
		both = provider.Then(both, provider.IfNeeded(addBootstrapComponents(p), provider.Skip))
		both = provider.Then(both, provider.IfNeeded(d.pivotToBootstrap(), provider.Skip))
		both = provider.Then(both, upgradeCluster)
		both = provider.Then(both, provider.IfNeeded(d.pivotToManagement(), provider.Skip))
		s = provider.Then(both, provider.IfNeeded(d.deleteBootstrapCluster(p), provider.Skip))
	}
	s = provider.Then(s, provider.ConfigStep(WriteClusterConfig, &d.Deps, (*Managed).onManagement))
	s = provider.Then(s, provider.NoOp(PostUpgrade))
	return provider.Bind(s, d.Registrars, p, HookRegistrar.BindManagementUpgrade)
}

func preUpgrade(p UpgradeProvider) provider.Step[Managed, Managed, provider.Decision] {
	return provider.Step[Managed, Managed, provider.Decision]{
		Task: PreUpgrade, Timeout: provider.CheckTimeout,
		Run: func(c *Managed) (provider.Decision, error) {
			d, err := c.onManagement().Decide(p)
			if err != nil {
				return d, err
			}
			return d, d.Compare(&c.Context, p, c.Management)
		},
		Next: func(c Managed, _ provider.Decision) Managed { return c },
	}
}
