package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

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
