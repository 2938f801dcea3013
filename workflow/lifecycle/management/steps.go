package management

import (
	"errors"
	"fmt"
	"time"

	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/move"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	provider.Deps
	Move       task.Kind
	Bootstrap  Bootstrap
	InPlace    bool
	Registrars []HookRegistrar
}

const (
	bootstrapTimeout = 20 * time.Minute
	pivotTimeout     = time.Hour
)

func (d *Deps) createBootstrapCluster() provider.Step[Specified, Bootstrapped, provider.Access] {
	return provider.Step[Specified, Bootstrapped, provider.Access]{
		Task: CreateBootstrapCluster, Timeout: bootstrapTimeout,
		Run: func(c *Specified) (provider.Access, error) { return d.createBootstrap(&c.Context) },
		Next: func(c Specified, a provider.Access) Bootstrapped {
			return Bootstrapped{Specified: c, Bootstrap: *a.Cluster}
		},
		Undo: func(c *Specified, a *provider.Access) error { return d.undoBootstrap(c, a) },
	}
}

func (d *Deps) addBootstrapCluster() provider.Step[Managed, Paired, provider.Access] {
	return provider.Step[Managed, Paired, provider.Access]{
		Task: AddBootstrapCluster, Timeout: bootstrapTimeout,
		Run:  func(c *Managed) (provider.Access, error) { return d.createBootstrap(&c.Context) },
		Next: func(c Managed, a provider.Access) Paired { return Paired{Managed: c, Bootstrap: *a.Cluster} },
		Undo: func(c *Managed, a *provider.Access) error { return d.undoBootstrap(&c.Specified, a) },
	}
}

func addBootstrapComponents(p provider.ComponentInstaller) provider.Step[Paired, Paired, provider.None] {
	return provider.On(AddBootstrapComponents, provider.ComponentsTimeout,
		(*Paired).onBootstrap, p.InstallComponents, p.UninstallComponents)
}

func (d *Deps) pivotToBootstrap() provider.Step[Paired, Paired, provider.None] {
	return provider.Do(PivotToBootstrap, pivotTimeout,
		func(c *Paired) error { return d.pivot(c.onManagement(), c.onBootstrap()) },
		func(c *Paired) error {
			_, err := d.undoPivot(c.onManagement(), c.onBootstrap())
			return err
		})
}

func (d *Deps) pivotToManagement() provider.Step[Paired, Paired, provider.None] {
	return provider.Do(PivotToManagement, pivotTimeout,
		func(c *Paired) error { return d.pivot(c.onBootstrap(), c.onManagement()) },
		func(c *Paired) error {
			back, err := d.undoPivot(c.onBootstrap(), c.onManagement())
			if err != nil || !back {
				return err
			}
			return c.onBootstrap().RestoreAnnotation(string(CreateManagementCluster))
		})
}

func (d *Deps) deleteBootstrapCluster(p provider.ComponentInstaller) provider.Step[Paired, Managed, provider.None] {
	return deleteBootstrapStep(d, DeleteBootstrapCluster, p, (*Paired).onBootstrap,
		func(c Paired, _ provider.None) Managed { return c.Managed })
}

func (d *Deps) deleteLastBootstrapCluster(p provider.ComponentInstaller) provider.Step[Bootstrapped, Specified, provider.None] {
	return deleteBootstrapStep(d, DeleteLastBootstrapCluster, p, (*Bootstrapped).onBootstrap,
		func(c Bootstrapped, _ provider.None) Specified { return c.Specified })
}

func deleteBootstrapStep[A, B any](
	d *Deps, name hook.Task[A, B], p provider.ComponentInstaller, of func(*A) provider.Target, next func(A, provider.None) B,
) provider.Step[A, B, provider.None] {
	return provider.Step[A, B, provider.None]{
		Task: name, Timeout: bootstrapTimeout, Next: next,
		Run:  func(c *A) (none provider.None, err error) { return none, d.deleteBootstrap(of(c)) },
		Undo: func(c *A, _ *provider.None) error { return d.recreateBootstrap(of(c), p) },
	}
}

func (d *Deps) createBootstrap(c *provider.Context) (provider.Access, error) {
	ref, err := d.Bootstrap.Create(c)
	return provider.Access{Cluster: &ref}, err
}

// deleteBootstrap deletes a temporary bootstrap cluster. It fails if the bootstrap cluster still
// manages the cluster or does not respond, because the cluster's objects could be lost with it.
func (d *Deps) deleteBootstrap(t provider.Target) error {
	boot, temporary := d.Bootstrap.(temporaryBootstrap)
	if !temporary {
		return nil
	}
	exists, err := boot.Exists(t.Context)
	if err != nil {
		return err
	}
	if exists {
		there, err := t.Exists()
		switch {
		case errors.Is(err, settled.ErrVersion): // Cluster API is not installed; it is removed only after all objects
		case err != nil:
			return fmt.Errorf("the bootstrap cluster exists, but scute cannot read whether it still manages cluster %s/%s: start it again, or delete it "+
				"by hand if you do not need its objects: %w", t.Namespace, t.Name, err)
		case there:
			return task.Final(fmt.Errorf("the bootstrap cluster still manages cluster %s/%s: move it to another cluster first", t.Namespace, t.Name))
		}
	}
	return boot.Delete(t.Context)
}

// undoBootstrap deletes the bootstrap cluster. It makes the same check as deleteBootstrap: if an
// operator marked the move back as undone, the bootstrap cluster may have the only copy of the
// cluster's objects.
func (d *Deps) undoBootstrap(c *Specified, made *provider.Access) error {
	if made != nil && made.Cluster != nil {
		return d.deleteBootstrap(c.Target(*made.Cluster, c.Cluster))
	}
	if boot, temporary := d.Bootstrap.(temporaryBootstrap); temporary {
		return boot.Delete(&c.Context)
	}
	return nil
}

// recreateBootstrap creates the bootstrap cluster again, because the undos of earlier tasks need
// it. It keeps an existing bootstrap cluster, which was not deleted and may still manage the
// cluster.
func (d *Deps) recreateBootstrap(t provider.Target, p provider.ComponentInstaller) error {
	boot, temporary := d.Bootstrap.(temporaryBootstrap)
	if !temporary {
		return nil
	}
	exists, err := boot.Exists(t.Context)
	if err != nil {
		return err
	}
	on := t.Manager
	if exists {
		if _, err := t.Exists(); err != nil && !errors.Is(err, settled.ErrVersion) {
			return fmt.Errorf("the bootstrap cluster exists, but does not respond: start it again, or delete it by hand if you do not need its objects: %w",
				err)
		}
	} else if on, err = boot.Create(t.Context); err != nil {
		return err
	}
	return p.InstallComponents(t.Context, on)
}

const (
	pivotPart    = "move"
	moveBackPart = "back"
)

func moveInputs(from, to provider.Target) move.With {
	return move.With{Clusters: []string{from.Name}, Namespace: from.Namespace, From: from.Manager, To: to.Manager}
}

func (d *Deps) pivot(from, to provider.Target) error {
	if _, err := from.Perform(pivotPart, d.Move, moveInputs(from, to)); err != nil {
		return err
	}
	return to.WaitAvailable()
}

// undoPivot reverts a move in progress, or moves the cluster back after a completed move (back).
func (d *Deps) undoPivot(from, to provider.Target) (back bool, err error) {
	if !from.Started(pivotPart) {
		return false, nil
	}
	if err := from.Revert(pivotPart, d.Move, moveInputs(from, to)); !errors.Is(err, move.ErrMoved) {
		return false, err
	}
	if _, err := from.Perform(moveBackPart, d.Move, moveInputs(to, from)); err != nil {
		return false, fmt.Errorf("moving the cluster back: %w", err)
	}
	return true, from.WaitAvailable()
}
