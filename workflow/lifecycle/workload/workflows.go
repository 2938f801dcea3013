package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	provider.Deps
	Registrars []HookRegistrar
}

// NewCreate constructs the workflow that creates a workload cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	start := provider.Begin(d.Clusters, Managed{Cluster: spec, Management: management})
	start = provider.Then(start, provider.NoOp(PreCreate))
	s := provider.Then(start, provider.CreateStep(CreateWorkloadCluster, &d.Deps, p, (*Managed).target,
		func(c Managed, created access.ClusterRef) Connected { return Connected{Managed: c, Workload: created} }))
	s = provider.Then(s, provider.NetworkStep(InstallNetworking, p, (*Connected).workload, (*Connected).target))
	s = provider.Then(s, provider.On(InstallComponents, provider.ComponentsTimeout,
		(*Connected).workload, p.InstallComponents, p.UninstallComponents))
	s = provider.Then(s, provider.NoOp(PostCreate))
	return provider.Bind(s, d.Registrars, p, HookRegistrar.BindWorkloadCreate)
}

// NewUpgrade constructs the workflow that upgrades a workload cluster to spec.Version. The result
// depends only on the arguments.
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

// NewDelete constructs the workflow that deletes a workload cluster. The result depends only on the arguments.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	deleteCluster := provider.Do(DeleteCluster, provider.ClusterTimeout,
		func(c *Managed) error {
			if err := c.target().Delete(p, func() error { return nil }); err != nil {
				return err
			}
			return c.target().RemoveKubeconfig(d.Folder)
		},
		func(c *Managed) error { return c.target().UndoDelete() })
	deleteCluster.PointOfNoReturn = true
	s := provider.Begin(d.Clusters, Managed{Cluster: spec, Management: management})
	s = provider.Then(s, provider.NoOp(PreDelete))
	s = provider.Then(s, deleteCluster)
	s = provider.Then(s, provider.NoOp(PostDelete))
	return provider.Bind(s, d.Registrars, p, HookRegistrar.BindWorkloadDelete)
}
