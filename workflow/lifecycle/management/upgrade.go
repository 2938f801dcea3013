package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a management cluster to the specification's version. The same arguments
// give the same tasks.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.Named, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreUpgrade.Point(), UpgradeManagementComponents.Point(), UpgradeNetworking.Point(), UpgradeInstallManagementComponents.Point(),
		AddBootstrapCluster.Point(), AddBootstrapComponents.Point(), PivotToBootstrap.Point(),
		UpgradeCluster.Point(), PivotToManagement.Point(), DeleteBootstrapCluster.Point(), WriteClusterConfig.Point(), PostUpgrade.Point(),
	}, HookRegistrar.BindManagementUpgrade)
	w := &upgrade{Deps: d, provider: p}
	s := sequence.Begin(d.Clusters, binder, Managed{Specified: Specified{Cluster: spec}, Management: management})
	s = sequence.Then(s, sequence.Do(PreUpgrade, "PreUpgrade", withinLook, func(c *Managed) error {
		_, err := cluster.Upgradable(&c.Context, p, c.Management, c.Cluster)
		return err
	}, nil))
	s = sequence.Paused(s, d.Pause)
	s = sequence.Then(s, w.upgradeManagementComponents())
	s = sequence.Then(s, w.upgradeNetworking())
	s = sequence.Then(s, w.installManagementComponents())
	b := sequence.Then(s, d.addBootstrapCluster())
	b = sequence.Then(b, d.addBootstrapComponents(p))
	b = sequence.Then(b, d.pivotToBootstrap())
	b = sequence.Then(b, w.upgradeCluster())
	b = sequence.Then(b, d.pivotToManagement())
	s = sequence.Then(b, d.deleteBootstrapCluster(p))
	s = sequence.Then(s, d.writeClusterConfig())
	s = sequence.Then(s, sequence.Place(PostUpgrade, "PostUpgrade"))
	made, more := s.Build()
	return made, append(problems, more...)
}

type upgrade struct {
	Deps
	provider UpgradeProvider
}

func (w *upgrade) upgradeManagementComponents() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeManagementComponents, "UpgradeManagementComponents", withinComponents,
		func(c *Managed) error { return w.provider.UpgradeComponents(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.RestoreComponents(&c.Context, c.Management) })
}

func (w *upgrade) upgradeNetworking() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeNetworking, "UpgradeNetworking", withinNetwork,
		func(c *Managed) error { return w.provider.UpgradeNetworking(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.RestoreNetworking(&c.Context, c.Management) })
}

func (w *upgrade) installManagementComponents() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeInstallManagementComponents, "InstallManagementComponents", withinComponents,
		func(c *Managed) error { return w.provider.InstallComponents(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.UninstallComponents(&c.Context, c.Management) })
}

func (w *upgrade) upgradeCluster() sequence.Step[Paired, Paired, sequence.None] {
	s := sequence.Do(UpgradeCluster, "UpgradeCluster", withinUpgrade,
		func(c *Paired) error {
			return cluster.Upgrade(&c.Context, w.provider, w.Apply, c.Bootstrap, c.Cluster)
		},
		func(c *Paired) error { return cluster.Downgrade(&c.Context) })
	s.PointOfNoReturn = true
	return s
}

func (d *Deps) writeClusterConfig() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(WriteClusterConfig, "WriteClusterConfig", withinLook,
		func(c *Managed) error { return d.Config.WriteConfig(&c.Context, c.Management, c.Cluster) },
		func(c *Managed) error { return d.Config.RestoreConfig(&c.Context) })
}
