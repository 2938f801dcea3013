package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a workload cluster to the specification's version. The result depends only on the arguments.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.Named, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreUpgrade.Point(), UpgradeNetworking.Point(), UpgradeComponents.Point(), UpgradeCluster.Point(), WriteClusterConfig.Point(), PostUpgrade.Point(),
	}, HookRegistrar.BindWorkloadUpgrade)
	w := &upgrade{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, Managed{Cluster: spec, Management: management})
	s := sequence.Then(start, w.preUpgrade())
	s = sequence.Paused(s, d.Pause)
	s = sequence.Then(s, w.upgradeNetworking())
	s = sequence.Then(s, w.upgradeComponents())
	s = sequence.Then(s, cluster.IfNeeded(w.upgradeCluster(), w.unchanged))
	s = sequence.Then(s, d.writeClusterConfig())
	s = sequence.Then(s, sequence.Place(PostUpgrade, "PostUpgrade"))
	made, more := s.Build()
	return made, append(problems, more...)
}

type upgrade struct {
	Deps
	provider UpgradeProvider
}

// upgradable is the output of pre-upgrade.
type upgradable struct {
	provider.Access
	cluster.Decision
}

func (w *upgrade) preUpgrade() sequence.Step[Managed, Reached, upgradable] {
	return sequence.Step[Managed, Reached, upgradable]{
		Task: PreUpgrade, Kind: "PreUpgrade", Within: withinLook,
		Run: func(c *Managed) (out upgradable, err error) {
			if out.Decision, err = cluster.Decide(&c.Context, w.provider, c.Management, c.Cluster); err != nil {
				return out, err
			}
			if out.Access, err = cluster.Keep(&c.Context, w.provider, w.Folder, c.Management, c.Cluster); err != nil {
				return out, err
			}
			return out, out.Compare(&c.Context, w.provider, *out.Access.Cluster)
		},
		Next: func(c Managed, a upgradable) Reached {
			return Reached{Managed: c, Workload: *a.Access.Cluster}
		},
	}
}

func (w *upgrade) upgradeNetworking() sequence.Step[Reached, Reached, sequence.None] {
	return sequence.Do(UpgradeNetworking, "UpgradeNetworking", withinNetwork,
		func(c *Reached) error { return w.provider.UpgradeNetworking(&c.Context, c.Workload) },
		func(c *Reached) error { return w.provider.RestoreNetworking(&c.Context, c.Workload) })
}

func (w *upgrade) upgradeComponents() sequence.Step[Reached, Reached, sequence.None] {
	return sequence.Do(UpgradeComponents, "UpgradeComponents", withinComponents,
		func(c *Reached) error { return w.provider.UpgradeComponents(&c.Context, c.Workload) },
		func(c *Reached) error { return w.provider.RestoreComponents(&c.Context, c.Workload) })
}

func (w *upgrade) upgradeCluster() sequence.Step[Reached, Reached, sequence.None] {
	s := sequence.Do(UpgradeCluster, "UpgradeCluster", withinUpgrade,
		func(c *Reached) error {
			return cluster.Upgrade(&c.Context, w.provider, w.Apply, c.Management, c.Cluster)
		},
		func(c *Reached) error { return cluster.Downgrade(&c.Context) })
	s.PointOfNoReturn = true
	return s
}

func (w *upgrade) unchanged(c *Reached) error {
	return cluster.Unchanged(&c.Context, w.provider, c.Management, c.Cluster)
}

func (d *Deps) writeClusterConfig() sequence.Step[Reached, Reached, sequence.None] {
	return sequence.Do(WriteClusterConfig, "WriteClusterConfig", withinLook,
		func(c *Reached) error { return d.Config.WriteConfig(&c.Context, c.Management, c.Cluster) },
		func(c *Reached) error { return d.Config.RestoreConfig(&c.Context) })
}
