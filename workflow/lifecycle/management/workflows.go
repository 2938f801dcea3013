package management

import (
	"fmt"

	"scute.dev/view"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewCreate constructs the workflow that creates a management cluster. The result depends only on
// the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster) (task.NamedWorkflow, []workflow.Problem) {
	start := provider.Begin(d.Clusters, Specified{Cluster: spec})
	start = provider.Then(start, provider.NoOp(PreCreate))
	boot := provider.Then(start, d.createBootstrapCluster())
	boot = provider.Then(boot, provider.On(InstallBootstrapComponents, provider.ComponentsTimeout,
		(*Bootstrapped).onBootstrap, p.InstallComponents, p.UninstallComponents))
	both := provider.Then(boot, provider.CreateStep(CreateManagementCluster, &d.Deps, p, (*Bootstrapped).onBootstrap,
		func(c Bootstrapped, created access.ClusterRef) Paired {
			return Paired{Managed: Managed{Specified: c.Specified, Management: created}, Bootstrap: c.Bootstrap}
		}))
	both = provider.Then(both, provider.NetworkStep(InstallNetworking, p, (*Paired).onManagement, (*Paired).onBootstrap))
	both = provider.Then(both, provider.On(InstallManagementComponents, provider.ComponentsTimeout,
		(*Paired).onManagement, p.InstallComponents, p.UninstallComponents))
	both = provider.Then(both, d.pivotToManagement())
	both = provider.Then(both, provider.On(InstallClusterConfiguration, provider.ComponentsTimeout,
		(*Paired).onManagement, p.InstallConfiguration, p.UninstallConfiguration))
	alone := provider.Then(both, d.deleteBootstrapCluster(p))
	alone = provider.Then(alone, provider.NoOp(PostCreate))
	return provider.Bind(alone, d.Registrars, p, HookRegistrar.BindManagementCreate)
}

// NewUpgrade constructs the workflow that upgrades a management cluster to spec.Version. The result
// depends only on the arguments.
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

// NewDelete constructs the workflow that deletes a management cluster. The result depends only on
// the arguments.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	start := provider.Begin(d.Clusters, Managed{Specified: Specified{Cluster: spec}, Management: management})
	start = provider.Then(start, provider.Do(PreDelete, provider.CheckTimeout, checkNoOtherClusters, nil))
	both := provider.Then(start, d.addBootstrapCluster())
	both = provider.Then(both, addBootstrapComponents(p))
	both = provider.Then(both, d.pivotToBootstrap())
	remnant := provider.Then(both, deleteCluster(p))
	nothing := provider.Then(remnant, d.deleteLastBootstrapCluster(p))
	nothing = provider.Then(nothing, provider.NoOp(PostDelete))
	return provider.Bind(nothing, d.Registrars, p, HookRegistrar.BindManagementDelete)
}

// checkNoOtherClusters fails if there are other Clusters, because nothing would manage their
// machines any more.
func checkNoOtherClusters(c *Managed) error {
	others, err := c.onManagement().OtherClusters()
	if err != nil || len(others) == 0 {
		return err
	}
	return task.Final(fmt.Errorf("the management cluster still has %d other Clusters, whose machines would keep running unmanaged: %s: delete or "+
		"move them first",
		len(others), view.First(others)))
}

// recheckNoOtherClusters repeats the check of pre-delete, because hours may have passed. If
// pre-delete failed and an operator ignored the failure, it does nothing.
func recheckNoOtherClusters(c *Paired) error {
	if _, passed := c.Call().Inputs[string(PreDelete)]; !passed {
		return nil
	}
	return checkNoOtherClusters(&c.Managed)
}

func deleteCluster(p DeleteProvider) provider.Step[Paired, Bootstrapped, provider.None] {
	return provider.Step[Paired, Bootstrapped, provider.None]{
		Task: DeleteCluster, Timeout: provider.ClusterTimeout, PointOfNoReturn: true,
		Run: func(c *Paired) (provider.None, error) {
			return provider.None{}, c.onBootstrap().Delete(p, func() error { return recheckNoOtherClusters(c) })
		},
		Next: func(c Paired, _ provider.None) Bootstrapped {
			return Bootstrapped{Specified: c.Specified, Bootstrap: c.Bootstrap}
		},
		Undo: func(c *Paired, _ *provider.None) error { return c.onBootstrap().UndoDelete() },
	}
}
