package management

import (
	"scute.dev/api/v1alpha1"
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
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) ([]v1alpha1.TaskSpec, task.Kinds, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreUpgrade.Point(), UpgradeManagementComponents.Point(), UpgradeNetworking.Point(), UpgradeInstallManagementComponents.Point(),
		UpgradeCreateBootstrapCluster.Point(), UpgradeInstallBootstrapComponents.Point(), UpgradePivotToBootstrap.Point(),
		UpgradeCluster.Point(), UpgradePivotToManagement.Point(), UpgradeDeleteBootstrapCluster.Point(), PostUpgrade.Point(),
	}, HookRegistrar.BindManagementUpgrade)
	w := &upgrade{Deps: d, provider: p}
	s := sequence.Begin(d.Clusters, binder, UpgradeContext{Cluster: spec, Management: management})
	s = sequence.Then(s, sequence.Do(PreUpgrade, "PreUpgrade", withinHook, func(c *UpgradeContext) error {
		return cluster.Upgradable(&c.Context, c.Management, c.Cluster)
	}, nil))
	s = sequence.Paused(s, d.Pause)
	s = sequence.Then(s, w.upgradeManagementComponents())
	s = sequence.Then(s, w.upgradeNetworking())
	s = sequence.Then(s, w.installManagementComponents())
	b := sequence.Then(s, w.createBootstrapCluster())
	b = sequence.Then(b, w.installBootstrapComponents())
	b = sequence.Then(b, w.pivotToBootstrap())
	b = sequence.Then(b, w.upgradeCluster())
	b = sequence.Then(b, w.pivotToManagement())
	s = sequence.Then(b, w.deleteBootstrapCluster())
	s = sequence.Resumed(s, d.Pause)
	s = sequence.Then(s, sequence.Do(PostUpgrade, "PostUpgrade", withinHook, nothing[UpgradeContext], nil))
	tasks, kinds, more := s.Build()
	return tasks, kinds, append(problems, more...)
}

type upgrade struct {
	Deps
	provider UpgradeProvider
}

func (w *upgrade) upgradeManagementComponents() sequence.Step[UpgradeContext, UpgradeContext, sequence.None] {
	return sequence.Do(UpgradeManagementComponents, "UpgradeManagementComponents", withinComponents,
		func(c *UpgradeContext) error { return w.provider.UpgradeComponents(&c.Context, c.Management) },
		func(c *UpgradeContext) error { return w.provider.RestoreComponents(&c.Context, c.Management) })
}

func (w *upgrade) upgradeNetworking() sequence.Step[UpgradeContext, UpgradeContext, sequence.None] {
	return sequence.Do(UpgradeNetworking, "UpgradeNetworking", withinNetwork,
		func(c *UpgradeContext) error { return w.provider.UpgradeNetworking(&c.Context, c.Management) },
		func(c *UpgradeContext) error { return w.provider.RestoreNetworking(&c.Context, c.Management) })
}

func (w *upgrade) installManagementComponents() sequence.Step[UpgradeContext, UpgradeContext, sequence.None] {
	return sequence.Do(UpgradeInstallManagementComponents, "InstallManagementComponents", withinComponents,
		func(c *UpgradeContext) error { return w.provider.InstallComponents(&c.Context, c.Management) },
		func(c *UpgradeContext) error { return w.provider.UninstallComponents(&c.Context, c.Management) })
}

func (w *upgrade) createBootstrapCluster() sequence.Step[UpgradeContext, UpgradeBootstrapped, provider.Access] {
	return sequence.Step[UpgradeContext, UpgradeBootstrapped, provider.Access]{
		Task: UpgradeCreateBootstrapCluster, Kind: "CreateBootstrapCluster", Within: withinBootstrap,
		Run: func(c *UpgradeContext) (provider.Access, error) { return w.createBootstrap(&c.Context) },
		Next: func(c UpgradeContext, a provider.Access) UpgradeBootstrapped {
			return UpgradeBootstrapped{UpgradeContext: c, Bootstrap: *a.Cluster}
		},
		Undo: func(c *UpgradeContext, a *provider.Access) error { return w.undoBootstrap(&c.Context, a, c.Cluster) },
	}
}

func (w *upgrade) installBootstrapComponents() sequence.Step[UpgradeBootstrapped, UpgradeBootstrapped, sequence.None] {
	return sequence.Do(UpgradeInstallBootstrapComponents, "InstallBootstrapComponents", withinComponents,
		func(c *UpgradeBootstrapped) error { return w.provider.InstallComponents(&c.Context, c.Bootstrap) },
		func(c *UpgradeBootstrapped) error { return w.provider.UninstallComponents(&c.Context, c.Bootstrap) })
}

func (w *upgrade) pivotToBootstrap() sequence.Step[UpgradeBootstrapped, UpgradeBootstrapped, sequence.None] {
	return sequence.Do(UpgradePivotToBootstrap, "PivotToBootstrap", withinPivot,
		func(c *UpgradeBootstrapped) error { return w.pivot(&c.Context, c.Cluster, c.Management, c.Bootstrap) },
		func(c *UpgradeBootstrapped) error { return w.unpivot(&c.Context, c.Cluster, c.Management, c.Bootstrap) })
}

func (w *upgrade) upgradeCluster() sequence.Step[UpgradeBootstrapped, UpgradeBootstrapped, sequence.None] {
	s := sequence.Do(UpgradeCluster, "UpgradeCluster", withinUpgrade,
		func(c *UpgradeBootstrapped) error {
			return cluster.Upgrade(&c.Context, w.provider, w.Apply, c.Bootstrap, c.Cluster)
		},
		func(c *UpgradeBootstrapped) error { return cluster.Downgrade(&c.Context) })
	s.PointOfNoReturn = true
	return s
}

func (w *upgrade) pivotToManagement() sequence.Step[UpgradeBootstrapped, UpgradeBootstrapped, sequence.None] {
	return sequence.Do(UpgradePivotToManagement, "PivotToManagement", withinPivot,
		func(c *UpgradeBootstrapped) error { return w.pivot(&c.Context, c.Cluster, c.Bootstrap, c.Management) },
		func(c *UpgradeBootstrapped) error { return w.unpivot(&c.Context, c.Cluster, c.Bootstrap, c.Management) })
}

func (w *upgrade) deleteBootstrapCluster() sequence.Step[UpgradeBootstrapped, UpgradeContext, sequence.None] {
	return sequence.Step[UpgradeBootstrapped, UpgradeContext, sequence.None]{
		Task: UpgradeDeleteBootstrapCluster, Kind: "DeleteBootstrapCluster", Within: withinBootstrap,
		Run: func(c *UpgradeBootstrapped) (sequence.None, error) {
			return sequence.None{}, w.deleteBootstrap(&c.Context, c.Bootstrap, c.Cluster)
		},
		Next: func(c UpgradeBootstrapped, _ sequence.None) UpgradeContext { return c.UpgradeContext },
		Undo: func(c *UpgradeBootstrapped, _ *sequence.None) error {
			return w.recreateBootstrap(&c.Context, c.Bootstrap, c.Cluster, w.provider)
		},
	}
}
