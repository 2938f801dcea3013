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

// NewDelete constructs the workflow that deletes a workload cluster. The result depends only on the arguments.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{PreDelete.Point(), DeleteCluster.Point(), PostDelete.Point()}, HookRegistrar.BindWorkloadDelete)
	s := sequence.Begin(d.Clusters, binder, Managed{Cluster: spec, Management: management})
	s = sequence.Then(s, sequence.NoOp(PreDelete, "PreDelete"))
	s = sequence.Then(s, d.deleteCluster(p))
	s = sequence.Then(s, sequence.NoOp(PostDelete, "PostDelete"))
	made, more := s.Build()
	return made, append(problems, more...)
}

func (d *Deps) deleteCluster(p DeleteProvider) sequence.Step[Managed, Managed, sequence.None] {
	s := sequence.Do(DeleteCluster, "DeleteCluster", clusterTimeout,
		func(c *Managed) error {
			if err := cluster.Delete(&c.Context, p, c.Management, c.Cluster, func() error { return nil }); err != nil {
				return err
			}
			return cluster.RemoveKubeconfig(&c.Context, d.Folder, c.Management, c.Cluster)
		},
		func(c *Managed) error { return cluster.UndoDelete(&c.Context) })
	s.PointOfNoReturn = true
	return s
}
