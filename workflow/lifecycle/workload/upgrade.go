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
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreUpgrade.Point(), UpgradeNetworking.Point(), UpgradeComponents.Point(), UpgradeCluster.Point(), WriteClusterConfig.Point(), PostUpgrade.Point(),
	}, HookRegistrar.BindWorkloadUpgrade)
	w := &upgrade{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, Managed{Cluster: spec, Management: management})
	s := sequence.Then(start, w.preUpgrade())
	s = sequence.WithPause(s, d.Pause)
	s = sequence.Then(s, w.upgradeNetworking())
	s = sequence.Then(s, w.upgradeComponents())
	s = sequence.Then(s, cluster.IfNeeded(w.upgradeCluster(), w.waitUnchanged))
	s = sequence.Then(s, d.writeClusterConfig())
	s = sequence.Then(s, sequence.NoOp(PostUpgrade, "PostUpgrade"))
	made, more := s.Build()
	return made, append(problems, more...)
}

type upgrade struct {
	Deps
	provider UpgradeProvider
}

// upgradeOutput is the output of pre-upgrade.
type upgradeOutput struct {
	provider.Access
	cluster.Decision
}

func (w *upgrade) preUpgrade() sequence.Step[Managed, Connected, upgradeOutput] {
	return sequence.Step[Managed, Connected, upgradeOutput]{
		Task: PreUpgrade, Kind: "PreUpgrade", Timeout: checkTimeout,
		Run: func(c *Managed) (out upgradeOutput, err error) {
			if out.Decision, err = cluster.Decide(&c.Context, w.provider, c.Management, c.Cluster); err != nil {
				return out, err
			}
			if out.Access, err = cluster.StoreKubeconfig(&c.Context, w.provider, w.Folder, c.Management, c.Cluster); err != nil {
				return out, err
			}
			return out, out.Compare(&c.Context, w.provider, *out.Access.Cluster)
		},
		Next: func(c Managed, a upgradeOutput) Connected {
			return Connected{Managed: c, Workload: *a.Access.Cluster}
		},
	}
}

func (w *upgrade) upgradeNetworking() sequence.Step[Connected, Connected, sequence.None] {
	return sequence.Do(UpgradeNetworking, "UpgradeNetworking", networkTimeout,
		func(c *Connected) error { return w.provider.UpgradeNetworking(&c.Context, c.Workload) },
		func(c *Connected) error { return w.provider.RestoreNetworking(&c.Context, c.Workload) })
}

func (w *upgrade) upgradeComponents() sequence.Step[Connected, Connected, sequence.None] {
	return sequence.Do(UpgradeComponents, "UpgradeComponents", componentsTimeout,
		func(c *Connected) error { return w.provider.UpgradeComponents(&c.Context, c.Workload) },
		func(c *Connected) error { return w.provider.RestoreComponents(&c.Context, c.Workload) })
}

func (w *upgrade) upgradeCluster() sequence.Step[Connected, Connected, sequence.None] {
	s := sequence.Do(UpgradeCluster, "UpgradeCluster", upgradeTimeout,
		func(c *Connected) error {
			return cluster.Upgrade(&c.Context, w.provider, w.Apply, c.Management, c.Cluster)
		},
		func(c *Connected) error { return cluster.UndoUpgrade(&c.Context) })
	s.PointOfNoReturn = true
	return s
}

func (w *upgrade) waitUnchanged(c *Connected) error {
	return cluster.WaitUnchanged(&c.Context, w.provider, c.Management, c.Cluster)
}

func (d *Deps) writeClusterConfig() sequence.Step[Connected, Connected, sequence.None] {
	return sequence.Do(WriteClusterConfig, "WriteClusterConfig", checkTimeout,
		func(c *Connected) error { return d.Config.WriteConfig(&c.Context, c.Management, c.Cluster) },
		func(c *Connected) error { return d.Config.RestoreConfig(&c.Context) })
}
