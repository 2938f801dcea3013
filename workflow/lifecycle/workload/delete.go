package workload

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewDelete constructs the workflow that deletes a workload cluster. The result depends only on the arguments.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	deleteCluster := sequence.Do(DeleteCluster, provider.ClusterTimeout,
		func(c *Managed) error {
			if err := c.target().Delete(p, func() error { return nil }); err != nil {
				return err
			}
			return c.target().RemoveKubeconfig(d.Folder)
		},
		func(c *Managed) error { return c.target().UndoDelete() })
	deleteCluster.PointOfNoReturn = true
	s := sequence.Begin(d.Clusters, Managed{Cluster: spec, Management: management})
	s = sequence.Then(s, sequence.NoOp(PreDelete))
	s = sequence.Then(s, deleteCluster)
	s = sequence.Then(s, sequence.NoOp(PostDelete))
	return sequence.Bind(s, d.Registrars, p, HookRegistrar.BindWorkloadDelete)
}
