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

// NewCreate constructs the workflow that creates a workload cluster. The result depends only on the arguments.
func NewCreate(d Deps, p CreateProvider, spec provider.Cluster, management access.ClusterRef) (task.NamedWorkflow, []workflow.Problem) {
	binder, problems := hook.Bind(d.Registrars, p, []hook.Point{
		PreCreate.Point(), CreateWorkloadCluster.Point(), InstallNetworking.Point(), InstallComponents.Point(), PostCreate.Point(),
	}, HookRegistrar.BindWorkloadCreate)
	w := &create{Deps: d, provider: p}
	start := sequence.Begin(d.Clusters, binder, Managed{Cluster: spec, Management: management})
	pre := sequence.Then(start, sequence.NoOp(PreCreate, "PreCreate"))
	s := sequence.Then(pre, w.createWorkloadCluster())
	s = sequence.Then(s, w.installNetworking())
	s = sequence.Then(s, w.installComponents())
	s = sequence.Then(s, sequence.NoOp(PostCreate, "PostCreate"))
	made, more := s.Build()
	return made, append(problems, more...)
}

type create struct {
	Deps
	provider CreateProvider
}

func (w *create) createWorkloadCluster() sequence.Step[Managed, Connected, provider.Access] {
	return sequence.Step[Managed, Connected, provider.Access]{
		Task: CreateWorkloadCluster, Kind: "CreateWorkloadCluster", Timeout: clusterTimeout,
		Run: func(c *Managed) (provider.Access, error) {
			return cluster.Create(&c.Context, w.provider, w.Apply, w.Folder, c.Management, c.Cluster)
		},
		Next: func(c Managed, a provider.Access) Connected {
			return Connected{Managed: c, Workload: *a.Cluster}
		},
		Undo: func(c *Managed, _ *provider.Access) error {
			return cluster.UndoCreate(&c.Context, w.Apply, w.Folder, c.Management, c.Cluster)
		},
	}
}

func (w *create) installNetworking() sequence.Step[Connected, Connected, sequence.None] {
	return sequence.Do(InstallNetworking, "InstallNetworking", networkTimeout,
		func(c *Connected) error {
			if err := w.provider.InstallNetworking(&c.Context, c.Workload); err != nil {
				return err
			}
			return cluster.WaitAvailable(&c.Context, c.Management, c.Cluster)
		},
		func(c *Connected) error { return w.provider.UninstallNetworking(&c.Context, c.Workload) })
}

func (w *create) installComponents() sequence.Step[Connected, Connected, sequence.None] {
	return sequence.Do(InstallComponents, "InstallComponents", componentsTimeout,
		func(c *Connected) error { return w.provider.InstallComponents(&c.Context, c.Workload) },
		func(c *Connected) error { return w.provider.UninstallComponents(&c.Context, c.Workload) })
}
