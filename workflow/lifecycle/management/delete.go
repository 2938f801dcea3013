package management

import (
	"fmt"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewDelete constructs the workflow that deletes a management cluster. The result depends only on the arguments.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreDelete.Point(), AddBootstrapCluster.Point(), AddBootstrapComponents.Point(),
		PivotToBootstrap.Point(), DeleteCluster.Point(), DeleteLastBootstrapCluster.Point(), PostDelete.Point(),
	}, HookRegistrar.BindManagementDelete)
	start := sequence.Begin(d.Clusters, binder, Managed{Specified: Specified{Cluster: spec}, Management: management})
	pre := sequence.Then(start, sequence.Do(PreDelete, "PreDelete", checkTimeout, checkNoOtherClusters, nil))
	bootstrapped := sequence.Then(pre, d.addBootstrapCluster())
	installed := sequence.Then(bootstrapped, d.addBootstrapComponents(p))
	pivoted := sequence.Then(installed, d.pivotToBootstrap())
	remnant := sequence.Then(pivoted, d.deleteCluster(p))
	nothingLeft := sequence.Then(remnant, d.deleteLastBootstrapCluster(p))
	done := sequence.Then(nothingLeft, sequence.NoOp(PostDelete, "PostDelete"))
	made, more := done.Build()
	return made, append(problems, more...)
}

// checkNoOtherClusters returns an error if the management cluster manages other Clusters, because nothing would manage their machines any more.
func checkNoOtherClusters(c *Managed) error {
	others, err := cluster.OtherClusters(&c.Context, c.Management, c.Cluster)
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

func (d *Deps) deleteCluster(p DeleteProvider) sequence.Step[Paired, Bootstrapped, sequence.None] {
	return sequence.Step[Paired, Bootstrapped, sequence.None]{
		Task: DeleteCluster, Kind: "DeleteCluster", Timeout: clusterTimeout, PointOfNoReturn: true,
		Run: func(c *Paired) (sequence.None, error) {
			return sequence.None{}, cluster.Delete(&c.Context, p, c.Bootstrap, c.Cluster, func() error { return recheckNoOtherClusters(c) })
		},
		Next: func(c Paired, _ sequence.None) Bootstrapped {
			return Bootstrapped{Specified: c.Specified, Bootstrap: c.Bootstrap}
		},
		Undo: func(c *Paired, _ *sequence.None) error { return cluster.UndoDelete(&c.Context) },
	}
}

func (d *Deps) deleteLastBootstrapCluster(p DeleteProvider) sequence.Step[Bootstrapped, Specified, sequence.None] {
	return sequence.Step[Bootstrapped, Specified, sequence.None]{
		Task: DeleteLastBootstrapCluster, Kind: "DeleteBootstrapCluster", Timeout: bootstrapTimeout,
		Run: func(c *Bootstrapped) (sequence.None, error) {
			return sequence.None{}, d.deleteBootstrap(&c.Context, c.Bootstrap, c.Cluster)
		},
		Next: func(c Bootstrapped, _ sequence.None) Specified { return c.Specified },
		Undo: func(c *Bootstrapped, _ *sequence.None) error {
			return d.recreateBootstrap(&c.Context, c.Bootstrap, c.Cluster, p)
		},
	}
}
