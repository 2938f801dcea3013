package management

import (
	"slices"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a management cluster to the specification's version. The result depends only on the arguments.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	points := []hook.Point{
		PreUpgrade.Point(), UpgradeManagementComponents.Point(), UpgradeNetworking.Point(), UpgradeInstallManagementComponents.Point(),
		UpgradeCluster.Point(), WriteClusterConfig.Point(), PostUpgrade.Point(),
	}
	if !d.InPlace {
		points = slices.Insert(points, 4, AddBootstrapCluster.Point(), AddBootstrapComponents.Point(), PivotToBootstrap.Point())
		points = slices.Insert(points, 8, PivotToManagement.Point(), DeleteBootstrapCluster.Point())
	}
	binder, problems := hook.Bind(d.Registrars, p, points, HookRegistrar.BindManagementUpgrade)
	w := &upgrade{Deps: d, provider: p}
	s := sequence.Begin(d.Clusters, binder, Managed{Specified: Specified{Cluster: spec}, Management: management})
	s = sequence.Then(s, w.preUpgrade())
	s = sequence.WithPause(s, d.Pause)
	s = sequence.Then(s, w.upgradeManagementComponents())
	s = sequence.Then(s, w.upgradeNetworking())
	s = sequence.Then(s, w.installManagementComponents())
	if d.InPlace {
		b := sequence.Convert(s, func(c Managed) Paired { return Paired{Managed: c, Bootstrap: c.Management} })
		b = sequence.Then(b, cluster.IfNeeded(w.upgradeCluster(), w.waitUnchanged))
		s = sequence.Convert(b, func(c Paired) Managed { return c.Managed })
	} else {
		b := sequence.Then(s, w.addBootstrapCluster())
		b = sequence.Then(b, cluster.IfNeeded(d.addBootstrapComponents(p), nil))
		b = sequence.Then(b, cluster.IfNeeded(d.pivotToBootstrap(), nil))
		b = sequence.Then(b, cluster.IfNeeded(w.upgradeCluster(), w.waitUnchanged))
		b = sequence.Then(b, cluster.IfNeeded(d.pivotToManagement(), nil))
		s = sequence.Then(b, cluster.IfNeeded(d.deleteBootstrapCluster(p), nil))
	}
	s = sequence.Then(s, d.writeClusterConfig())
	s = sequence.Then(s, sequence.NoOp(PostUpgrade, "PostUpgrade"))
	made, more := s.Build()
	return made, append(problems, more...)
}

type upgrade struct {
	Deps
	provider UpgradeProvider
}

func (w *upgrade) preUpgrade() sequence.Step[Managed, Managed, cluster.Decision] {
	return sequence.Step[Managed, Managed, cluster.Decision]{
		Task: PreUpgrade, Kind: "PreUpgrade", Timeout: checkTimeout, Silent: true,
		Run: func(c *Managed) (cluster.Decision, error) {
			d, err := cluster.Decide(&c.Context, w.provider, c.Management, c.Cluster)
			if err != nil {
				return d, err
			}
			return d, d.Compare(&c.Context, w.provider, c.Management)
		},
		Next: func(c Managed, _ cluster.Decision) Managed { return c },
	}
}

// addBootstrapCluster returns a step that creates a bootstrap cluster. If the cluster does not change, it creates none and uses the management
// cluster.
func (w *upgrade) addBootstrapCluster() sequence.Step[Managed, Paired, provider.Access] {
	s := w.Deps.addBootstrapCluster()
	run, undo := s.Run, s.Undo
	s.SkipReason = cluster.SkipReason
	s.Run = func(c *Managed) (provider.Access, error) {
		if skipped := cluster.SkipReason(c.Call()); skipped != "" {
			return provider.Access{Cluster: &c.Management, Skipped: skipped}, nil
		}
		return run(c)
	}
	s.Undo = func(c *Managed, a *provider.Access) error {
		if cluster.SkipReason(c.Call()) != "" {
			return nil
		}
		return undo(c, a)
	}
	return s
}

func (w *upgrade) upgradeManagementComponents() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeManagementComponents, "UpgradeManagementComponents", componentsTimeout,
		func(c *Managed) error { return w.provider.UpgradeComponents(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.RestoreComponents(&c.Context, c.Management) })
}

func (w *upgrade) upgradeNetworking() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeNetworking, "UpgradeNetworking", networkTimeout,
		func(c *Managed) error { return w.provider.UpgradeNetworking(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.RestoreNetworking(&c.Context, c.Management) })
}

func (w *upgrade) installManagementComponents() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(UpgradeInstallManagementComponents, "InstallManagementComponents", componentsTimeout,
		func(c *Managed) error { return w.provider.InstallComponents(&c.Context, c.Management) },
		func(c *Managed) error { return w.provider.UninstallComponents(&c.Context, c.Management) })
}

func (w *upgrade) upgradeCluster() sequence.Step[Paired, Paired, sequence.None] {
	s := sequence.Do(UpgradeCluster, "UpgradeCluster", upgradeTimeout,
		func(c *Paired) error {
			return cluster.Upgrade(&c.Context, w.provider, w.Apply, c.Bootstrap, c.Cluster)
		},
		func(c *Paired) error { return cluster.UndoUpgrade(&c.Context) })
	s.PointOfNoReturn = true
	return s
}

func (w *upgrade) waitUnchanged(c *Paired) error {
	return cluster.WaitUnchanged(&c.Context, w.provider, c.Management, c.Cluster)
}

func (d *Deps) writeClusterConfig() sequence.Step[Managed, Managed, sequence.None] {
	return sequence.Do(WriteClusterConfig, "WriteClusterConfig", checkTimeout,
		func(c *Managed) error { return d.Config.WriteConfig(&c.Context, c.Management, c.Cluster) },
		func(c *Managed) error { return d.Config.RestoreConfig(&c.Context) })
}
