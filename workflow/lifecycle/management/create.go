package management

import (
	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
)

// NewCreate constructs the workflow that creates a management cluster. The same arguments give the same tasks.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster) ([]v1alpha1.TaskSpec, task.Kinds, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreCreate.Point(), CreateBootstrapCluster.Point(), InstallBootstrapComponents.Point(), CreateManagementCluster.Point(),
		InstallNetworking.Point(), InstallManagementComponents.Point(), PivotToManagement.Point(),
		InstallClusterConfiguration.Point(), DeleteBootstrapCluster.Point(), PostCreate.Point(),
	}, HookRegistrar.BindManagementCreate)
	w := &create{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, CreateContext{Cluster: spec})
	pre := sequence.Then(start, sequence.Do(PreCreate, "PreCreate", withinHook, nothing[CreateContext], nil))
	bootstrapped := sequence.Then(pre, w.createBootstrapCluster())
	installed := sequence.Then(bootstrapped, w.installBootstrapComponents())
	created := sequence.Then(installed, w.createManagementCluster())
	networked := sequence.Then(created, w.installNetworking())
	managing := sequence.Then(networked, w.installManagementComponents())
	pivoted := sequence.Then(managing, w.pivotToManagement())
	configured := sequence.Then(pivoted, w.installClusterConfiguration())
	alone := sequence.Then(configured, w.deleteBootstrapCluster())
	done := sequence.Then(alone, sequence.Do(PostCreate, "PostCreate", withinHook, nothing[CreateDone], nil))
	tasks, kinds, more := done.Build()
	return tasks, kinds, append(problems, more...)
}

type create struct {
	Deps
	provider CreateProvider
}

func (w *create) createBootstrapCluster() sequence.Step[CreateContext, CreateBootstrapped, provider.Access] {
	return sequence.Step[CreateContext, CreateBootstrapped, provider.Access]{
		Task: CreateBootstrapCluster, Kind: "CreateBootstrapCluster", Within: withinBootstrap,
		Run: func(c *CreateContext) (provider.Access, error) { return w.createBootstrap(&c.Context) },
		Next: func(c CreateContext, a provider.Access) CreateBootstrapped {
			return CreateBootstrapped{CreateContext: c, Bootstrap: *a.Cluster}
		},
		Undo: func(c *CreateContext, a *provider.Access) error { return w.undoBootstrap(&c.Context, a, c.Cluster) },
	}
}

func (w *create) installBootstrapComponents() sequence.Step[CreateBootstrapped, CreateBootstrapped, sequence.None] {
	return sequence.Do(InstallBootstrapComponents, "InstallBootstrapComponents", withinComponents,
		func(c *CreateBootstrapped) error { return w.provider.InstallComponents(&c.Context, c.Bootstrap) },
		func(c *CreateBootstrapped) error { return w.provider.UninstallComponents(&c.Context, c.Bootstrap) })
}

func (w *create) createManagementCluster() sequence.Step[CreateBootstrapped, CreateManaged, provider.Access] {
	return sequence.Step[CreateBootstrapped, CreateManaged, provider.Access]{
		Task: CreateManagementCluster, Kind: "CreateManagementCluster", Within: withinCluster,
		Run: func(c *CreateBootstrapped) (provider.Access, error) {
			return cluster.Create(&c.Context, w.provider, w.Apply, w.Folder, c.Bootstrap, c.Cluster)
		},
		Next: func(c CreateBootstrapped, a provider.Access) CreateManaged {
			return CreateManaged{CreateBootstrapped: c, Management: *a.Cluster}
		},
		Undo: func(c *CreateBootstrapped, _ *provider.Access) error {
			return cluster.Uncreate(&c.Context, w.Apply, w.Folder, c.Bootstrap, c.Cluster)
		},
	}
}

func (w *create) installNetworking() sequence.Step[CreateManaged, CreateManaged, sequence.None] {
	return sequence.Do(InstallNetworking, "InstallNetworking", withinNetwork,
		func(c *CreateManaged) error {
			if err := w.provider.InstallNetworking(&c.Context, c.Management); err != nil {
				return err
			}
			return cluster.WaitAvailable(&c.Context, c.Bootstrap, c.Cluster)
		},
		func(c *CreateManaged) error { return w.provider.UninstallNetworking(&c.Context, c.Management) })
}

func (w *create) installManagementComponents() sequence.Step[CreateManaged, CreateManaged, sequence.None] {
	return sequence.Do(InstallManagementComponents, "InstallManagementComponents", withinComponents,
		func(c *CreateManaged) error { return w.provider.InstallComponents(&c.Context, c.Management) },
		func(c *CreateManaged) error { return w.provider.UninstallComponents(&c.Context, c.Management) })
}

func (w *create) pivotToManagement() sequence.Step[CreateManaged, CreateManaged, sequence.None] {
	return sequence.Do(PivotToManagement, "PivotToManagement", withinPivot,
		func(c *CreateManaged) error { return w.pivot(&c.Context, c.Cluster, c.Bootstrap, c.Management) },
		func(c *CreateManaged) error { return w.unpivot(&c.Context, c.Cluster, c.Bootstrap, c.Management) })
}

func (w *create) installClusterConfiguration() sequence.Step[CreateManaged, CreateManaged, sequence.None] {
	return sequence.Do(InstallClusterConfiguration, "InstallClusterConfiguration", withinComponents,
		func(c *CreateManaged) error { return w.provider.InstallConfiguration(&c.Context, c.Management) },
		func(c *CreateManaged) error { return w.provider.UninstallConfiguration(&c.Context, c.Management) })
}

func (w *create) deleteBootstrapCluster() sequence.Step[CreateManaged, CreateDone, sequence.None] {
	return sequence.Step[CreateManaged, CreateDone, sequence.None]{
		Task: DeleteBootstrapCluster, Kind: "DeleteBootstrapCluster", Within: withinBootstrap,
		Run: func(c *CreateManaged) (sequence.None, error) {
			return sequence.None{}, w.deleteBootstrap(&c.Context, c.Bootstrap, c.Cluster)
		},
		Next: func(c CreateManaged, _ sequence.None) CreateDone {
			return CreateDone{CreateContext: c.CreateContext, Management: c.Management}
		},
		Undo: func(c *CreateManaged, _ *sequence.None) error {
			return w.recreateBootstrap(&c.Context, c.Bootstrap, c.Cluster, w.provider)
		},
	}
}
