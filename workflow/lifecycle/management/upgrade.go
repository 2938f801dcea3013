package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a management cluster to the specification's version. The result depends only on the arguments.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	s := sequence.Begin(d.Clusters, Managed{Specified: Specified{Cluster: spec}, Management: management})
	s = sequence.Then(s, preUpgrade(p))
	s = sequence.WithPause(s, d.Pause)
	s = sequence.Then(s, sequence.On(UpgradeManagementComponents, provider.ComponentsTimeout,
		(*Managed).management, p.UpgradeComponents, p.RestoreComponents))
	s = sequence.Then(s, sequence.On(UpgradeNetworking, provider.NetworkTimeout,
		(*Managed).management, p.UpgradeNetworking, p.RestoreNetworking))
	s = sequence.Then(s, sequence.On(UpgradeInstallManagementComponents, provider.ComponentsTimeout,
		(*Managed).management, p.InstallComponents, p.UninstallComponents))
	upgradeCluster := provider.UpgradeStep(UpgradeCluster, &d.Deps, p, (*Paired).onBootstrap, (*Paired).onManagement)
	if d.InPlace {
		both := sequence.Convert(s, func(c Managed) Paired { return Paired{Managed: c, Bootstrap: c.Management} })
		both = sequence.Then(both, upgradeCluster)
		s = sequence.Convert(both, func(c Paired) Managed { return c.Managed })
	} else {
		both := sequence.Then(s, provider.IfNeeded(d.addBootstrapCluster(), func(c *Managed, reason string) (provider.Access, error) {
			return provider.Access{Cluster: &c.Management, Skipped: reason}, nil
		}))
		both = sequence.Then(both, provider.IfNeeded(addBootstrapComponents(p), provider.Skip))
		both = sequence.Then(both, provider.IfNeeded(d.pivotToBootstrap(), provider.Skip))
		both = sequence.Then(both, upgradeCluster)
		both = sequence.Then(both, provider.IfNeeded(d.pivotToManagement(), provider.Skip))
		s = sequence.Then(both, provider.IfNeeded(d.deleteBootstrapCluster(p), provider.Skip))
	}
	s = sequence.Then(s, provider.ConfigStep(WriteClusterConfig, &d.Deps, (*Managed).onManagement))
	s = sequence.Then(s, sequence.NoOp(PostUpgrade))
	return sequence.Bind(s, d.Registrars, p, HookRegistrar.BindManagementUpgrade)
}

func preUpgrade(p UpgradeProvider) sequence.Step[Managed, Managed, provider.Decision] {
	return sequence.Step[Managed, Managed, provider.Decision]{
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
