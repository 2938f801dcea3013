package management

import (
	"fmt"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewDelete constructs the workflow that deletes a management cluster. The result depends only on the arguments.
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

// checkNoOtherClusters returns an error if the management cluster manages other Clusters, because nothing would manage their machines any more.
func checkNoOtherClusters(c *Managed) error {
	others, err := c.onManagement().OtherClusters()
	if err != nil || len(others) == 0 {
		return err
	}
	return task.Final(fmt.Errorf("the management cluster still has %d other Clusters, whose machines would keep running unmanaged: %s: delete or "+
		"move them first",
		len(others), access.Summarize(others)))
}

// recheckNoOtherClusters checks again, because hours may pass between pre-delete and the deletion. It does not check if an operator has ignored a failure of
// pre-delete.
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
