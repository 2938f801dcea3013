package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewUpgrade constructs the workflow that upgrades a workload cluster to the specification's version. The result depends only on the arguments.
func NewUpgrade(d Deps, p UpgradeProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	s := provider.Then(provider.Begin(d.Clusters, Managed{Cluster: spec, Management: management}), preUpgrade(d.Folder, p))
	s = provider.WithPause(s, d.Pause)
	s = provider.Then(s, provider.On(UpgradeNetworking, provider.NetworkTimeout,
		(*Connected).workload, p.UpgradeNetworking, p.RestoreNetworking))
	s = provider.Then(s, provider.On(UpgradeComponents, provider.ComponentsTimeout,
		(*Connected).workload, p.UpgradeComponents, p.RestoreComponents))
	s = provider.Then(s, provider.UpgradeStep(UpgradeCluster, &d.Deps, p, (*Connected).target, (*Connected).target))
	s = provider.Then(s, provider.ConfigStep(WriteClusterConfig, &d.Deps, (*Connected).target))
	s = provider.Then(s, provider.NoOp(PostUpgrade))
	return provider.Bind(s, d.Registrars, p, HookRegistrar.BindWorkloadUpgrade)
}

// upgradeOutput is the output of pre-upgrade.
type upgradeOutput struct {
	provider.Access
	provider.Decision
}

func preUpgrade(folder string, p UpgradeProvider) provider.Step[Managed, Connected, upgradeOutput] {
	return provider.Step[Managed, Connected, upgradeOutput]{
		Task: PreUpgrade, Timeout: provider.CheckTimeout,
		Run: func(c *Managed) (out upgradeOutput, err error) {
			if out.Decision, err = c.target().Decide(p); err != nil {
				return out, err
			}
			if out.Access, err = c.target().StoreKubeconfig(p, folder); err != nil {
				return out, err
			}
			return out, out.Compare(&c.Context, p, *out.Access.Cluster)
		},
		Next: func(c Managed, a upgradeOutput) Connected {
			return Connected{Managed: c, Workload: *a.Access.Cluster}
		},
	}
}
