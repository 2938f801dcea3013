package management

import (
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
)

// NewCreate constructs the workflow that creates a management cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster) (task.NamedWorkflow, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreCreate.Point(), CreateBootstrapCluster.Point(), InstallBootstrapComponents.Point(), CreateManagementCluster.Point(),
		InstallNetworking.Point(), InstallManagementComponents.Point(), PivotToManagement.Point(),
		InstallClusterConfiguration.Point(), DeleteBootstrapCluster.Point(), PostCreate.Point(),
	}, HookRegistrar.BindManagementCreate)
	w := &create{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, Specified{Cluster: spec})
	pre := sequence.Then(start, sequence.NoOp(PreCreate, "PreCreate"))
	bootstrapped := sequence.Then(pre, w.createBootstrapCluster())
	installed := sequence.Then(bootstrapped, w.installBootstrapComponents())
	created := sequence.Then(installed, w.createManagementCluster())
	networked := sequence.Then(created, w.installNetworking())
	managing := sequence.Then(networked, w.installManagementComponents())
	pivoted := sequence.Then(managing, d.pivotToManagement())
	configured := sequence.Then(pivoted, w.installClusterConfiguration())
	alone := sequence.Then(configured, d.deleteBootstrapCluster(p))
	done := sequence.Then(alone, sequence.NoOp(PostCreate, "PostCreate"))
	made, more := done.Build()
	return made, append(problems, more...)
}

type create struct {
	Deps
	provider CreateProvider
}

func (w *create) createBootstrapCluster() sequence.Step[Specified, Bootstrapped, provider.Access] {
	return sequence.Step[Specified, Bootstrapped, provider.Access]{
		Task: CreateBootstrapCluster, Kind: "CreateBootstrapCluster", Timeout: bootstrapTimeout,
		Run: func(c *Specified) (provider.Access, error) { return w.createBootstrap(&c.Context) },
		Next: func(c Specified, a provider.Access) Bootstrapped {
			return Bootstrapped{Specified: c, Bootstrap: *a.Cluster}
		},
		Undo: func(c *Specified, a *provider.Access) error { return w.undoBootstrap(&c.Context, a, c.Cluster) },
	}
}

func (w *create) installBootstrapComponents() sequence.Step[Bootstrapped, Bootstrapped, sequence.None] {
	return sequence.Do(InstallBootstrapComponents, "InstallBootstrapComponents", componentsTimeout,
		func(c *Bootstrapped) error { return w.provider.InstallComponents(&c.Context, c.Bootstrap) },
		func(c *Bootstrapped) error { return w.provider.UninstallComponents(&c.Context, c.Bootstrap) })
}

func (w *create) createManagementCluster() sequence.Step[Bootstrapped, Paired, provider.Access] {
	return sequence.Step[Bootstrapped, Paired, provider.Access]{
		Task: CreateManagementCluster, Kind: "CreateManagementCluster", Timeout: clusterTimeout,
		Run: func(c *Bootstrapped) (provider.Access, error) {
			return cluster.Create(&c.Context, w.provider, w.Apply, w.Folder, c.Bootstrap, c.Cluster)
		},
		Next: func(c Bootstrapped, a provider.Access) Paired {
			return Paired{Managed: Managed{Specified: c.Specified, Management: *a.Cluster}, Bootstrap: c.Bootstrap}
		},
		Undo: func(c *Bootstrapped, _ *provider.Access) error {
			return cluster.UndoCreate(&c.Context, w.Apply, w.Folder, c.Bootstrap, c.Cluster)
		},
	}
}

func (w *create) installNetworking() sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(InstallNetworking, "InstallNetworking", networkTimeout,
		func(c *Paired) error {
			if err := w.provider.InstallNetworking(&c.Context, c.Management); err != nil {
				return err
			}
			return cluster.WaitAvailable(&c.Context, c.Bootstrap, c.Cluster)
		},
		func(c *Paired) error { return w.provider.UninstallNetworking(&c.Context, c.Management) })
}

func (w *create) installManagementComponents() sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(InstallManagementComponents, "InstallManagementComponents", componentsTimeout,
		func(c *Paired) error { return w.provider.InstallComponents(&c.Context, c.Management) },
		func(c *Paired) error { return w.provider.UninstallComponents(&c.Context, c.Management) })
}

func (w *create) installClusterConfiguration() sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(InstallClusterConfiguration, "InstallClusterConfiguration", componentsTimeout,
		func(c *Paired) error { return w.provider.InstallConfiguration(&c.Context, c.Management) },
		func(c *Paired) error { return w.provider.UninstallConfiguration(&c.Context, c.Management) })
}
