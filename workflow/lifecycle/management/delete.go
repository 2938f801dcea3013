package management

import (
	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// NewDelete constructs the workflow that deletes a management cluster. The same arguments give the same tasks.
func NewDelete(d Deps, p DeleteProvider, spec provider.Cluster, management access.ClusterRef) ([]v1alpha1.TaskSpec, task.Kinds, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreDelete.Point(), DeleteCreateBootstrapCluster.Point(), DeleteInstallBootstrapComponents.Point(),
		DeletePivotToBootstrap.Point(), DeleteCluster.Point(), DeleteDeleteBootstrapCluster.Point(), PostDelete.Point(),
	}, HookRegistrar.BindManagementDelete)
	w := &remove{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, DeleteContext{Cluster: spec, Management: management})
	pre := sequence.Then(start, sequence.Do(PreDelete, "PreDelete", withinHook, nothing[DeleteContext], nil))
	bootstrapped := sequence.Then(pre, w.createBootstrapCluster())
	installed := sequence.Then(bootstrapped, w.installBootstrapComponents())
	pivoted := sequence.Then(installed, w.pivotToBootstrap())
	remnant := sequence.Then(pivoted, w.deleteCluster())
	nothingLeft := sequence.Then(remnant, w.deleteBootstrapCluster())
	done := sequence.Then(nothingLeft, sequence.Do(PostDelete, "PostDelete", withinHook, nothing[DeleteDone], nil))
	tasks, kinds, more := done.Build()
	return tasks, kinds, append(problems, more...)
}

type remove struct {
	Deps
	provider DeleteProvider
}

func (w *remove) createBootstrapCluster() sequence.Step[DeleteContext, DeleteBootstrapped, provider.Access] {
	return sequence.Step[DeleteContext, DeleteBootstrapped, provider.Access]{
		Task: DeleteCreateBootstrapCluster, Kind: "CreateBootstrapCluster", Within: withinBootstrap,
		Run: func(c *DeleteContext) (provider.Access, error) { return w.createBootstrap(&c.Context) },
		Next: func(c DeleteContext, a provider.Access) DeleteBootstrapped {
			return DeleteBootstrapped{DeleteContext: c, Bootstrap: *a.Cluster}
		},
		Undo: func(c *DeleteContext, a *provider.Access) error { return w.undoBootstrap(&c.Context, a, c.Cluster) },
	}
}

func (w *remove) installBootstrapComponents() sequence.Step[DeleteBootstrapped, DeleteBootstrapped, sequence.None] {
	return sequence.Do(DeleteInstallBootstrapComponents, "InstallBootstrapComponents", withinComponents,
		func(c *DeleteBootstrapped) error { return w.provider.InstallComponents(&c.Context, c.Bootstrap) },
		func(c *DeleteBootstrapped) error { return w.provider.UninstallComponents(&c.Context, c.Bootstrap) })
}

func (w *remove) pivotToBootstrap() sequence.Step[DeleteBootstrapped, DeleteBootstrapped, sequence.None] {
	return sequence.Do(DeletePivotToBootstrap, "PivotToBootstrap", withinPivot,
		func(c *DeleteBootstrapped) error { return w.pivot(&c.Context, c.Cluster, c.Management, c.Bootstrap) },
		func(c *DeleteBootstrapped) error { return w.unpivot(&c.Context, c.Cluster, c.Management, c.Bootstrap) })
}

func (w *remove) deleteCluster() sequence.Step[DeleteBootstrapped, DeleteRemnant, sequence.None] {
	return sequence.Step[DeleteBootstrapped, DeleteRemnant, sequence.None]{
		Task: DeleteCluster, Kind: "DeleteCluster", Within: withinCluster, PointOfNoReturn: true,
		Run: func(c *DeleteBootstrapped) (sequence.None, error) {
			return sequence.None{}, cluster.Delete(&c.Context, w.provider, c.Bootstrap, c.Cluster)
		},
		Next: func(c DeleteBootstrapped, _ sequence.None) DeleteRemnant {
			return DeleteRemnant{Context: c.Context, Cluster: c.Cluster, Bootstrap: c.Bootstrap}
		},
		Undo: func(c *DeleteBootstrapped, _ *sequence.None) error { return cluster.Undelete(&c.Context) },
	}
}

func (w *remove) deleteBootstrapCluster() sequence.Step[DeleteRemnant, DeleteDone, sequence.None] {
	return sequence.Step[DeleteRemnant, DeleteDone, sequence.None]{
		Task: DeleteDeleteBootstrapCluster, Kind: "DeleteBootstrapCluster", Within: withinBootstrap,
		Run: func(c *DeleteRemnant) (sequence.None, error) {
			return sequence.None{}, w.deleteBootstrap(&c.Context, c.Bootstrap, c.Cluster)
		},
		Next: func(c DeleteRemnant, _ sequence.None) DeleteDone {
			return DeleteDone{Context: c.Context, Cluster: c.Cluster}
		},
		Undo: func(c *DeleteRemnant, _ *sequence.None) error {
			return w.recreateBootstrap(&c.Context, c.Bootstrap, c.Cluster, w.provider)
		},
	}
}
