package management

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
)

func (d *Deps) addBootstrapCluster() sequence.Step[Managed, Paired, provider.Access] {
	return sequence.Step[Managed, Paired, provider.Access]{
		Task: AddBootstrapCluster, Kind: "CreateBootstrapCluster", Timeout: bootstrapTimeout,
		Run:  func(c *Managed) (provider.Access, error) { return d.createBootstrap(&c.Context) },
		Next: func(c Managed, a provider.Access) Paired { return Paired{Managed: c, Bootstrap: *a.Cluster} },
		Undo: func(c *Managed, a *provider.Access) error { return d.undoBootstrap(&c.Context, a, c.Cluster) },
	}
}

func (d *Deps) addBootstrapComponents(p provider.ComponentInstaller) sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(AddBootstrapComponents, "InstallBootstrapComponents", componentsTimeout,
		func(c *Paired) error { return p.InstallComponents(&c.Context, c.Bootstrap) },
		func(c *Paired) error { return p.UninstallComponents(&c.Context, c.Bootstrap) })
}

func (d *Deps) pivotToBootstrap() sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(PivotToBootstrap, "PivotToBootstrap", pivotTimeout,
		func(c *Paired) error { return d.pivot(&c.Context, c.Cluster, c.Management, c.Bootstrap) },
		func(c *Paired) error {
			_, err := d.undoPivot(&c.Context, c.Cluster, c.Management, c.Bootstrap)
			return err
		})
}

func (d *Deps) pivotToManagement() sequence.Step[Paired, Paired, sequence.None] {
	return sequence.Do(PivotToManagement, "PivotToManagement", pivotTimeout,
		func(c *Paired) error { return d.pivot(&c.Context, c.Cluster, c.Bootstrap, c.Management) },
		func(c *Paired) error {
			back, err := d.undoPivot(&c.Context, c.Cluster, c.Bootstrap, c.Management)
			if err != nil || !back {
				return err
			}
			return cluster.RestoreAnnotation(&c.Context, string(CreateManagementCluster), c.Bootstrap, c.Cluster)
		})
}

func (d *Deps) deleteBootstrapCluster(p provider.ComponentInstaller) sequence.Step[Paired, Managed, sequence.None] {
	return sequence.Step[Paired, Managed, sequence.None]{
		Task: DeleteBootstrapCluster, Kind: "DeleteBootstrapCluster", Timeout: bootstrapTimeout,
		Run: func(c *Paired) (sequence.None, error) {
			return sequence.None{}, d.deleteBootstrap(&c.Context, c.Bootstrap, c.Cluster)
		},
		Next: func(c Paired, _ sequence.None) Managed { return c.Managed },
		Undo: func(c *Paired, _ *sequence.None) error {
			return d.recreateBootstrap(&c.Context, c.Bootstrap, c.Cluster, p)
		},
	}
}
