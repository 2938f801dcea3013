package provider

import (
	"encoding/json"
	"time"

	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are the dependencies of all workflows.
type Deps struct {
	Clusters *access.Clusters
	Apply    task.Kind
	// Folder is where a local run stores kubeconfigs.
	Folder string
	// Pause contains the inputs of the Pause task of an upgrade. If it is empty, there is no such
	// task.
	Pause json.RawMessage
	// WriteConfig writes an upgraded cluster's configuration. RestoreConfig restores the previous content.
	WriteConfig   func(Target) error
	RestoreConfig func(*Context) error
}

// The timeouts of an attempt if neither the manifest nor the run's deadline sets one.
const (
	CheckTimeout      = 10 * time.Minute
	ComponentsTimeout = 30 * time.Minute
	NetworkTimeout    = 30 * time.Minute
	ClusterTimeout    = time.Hour
	upgradeTimeout    = 4 * time.Hour
)

// CreateStep returns the step that creates a cluster. next adds the cluster's API server to the context.
func CreateStep[A, B any](
	name hook.Task[A, B], d *Deps, p Converter, of func(*A) Target, next func(A, access.ClusterRef) B,
) Step[A, B, Access] {
	return Step[A, B, Access]{
		Task: name, Timeout: ClusterTimeout,
		Run:  func(c *A) (Access, error) { return of(c).Create(p, d.Apply, d.Folder) },
		Next: func(c A, a Access) B { return next(c, *a.Cluster) },
		Undo: func(c *A, _ *Access) error { return of(c).UndoCreate(d.Apply, d.Folder) },
	}
}

// NetworkStep returns the step that installs the network on a new cluster. The step then waits
// until the Cluster object in the managing cluster is Available.
func NetworkStep[C any](
	name hook.Task[C, C], p NetworkInstaller, on, of func(*C) Target,
) Step[C, C, None] {
	s := On(name, NetworkTimeout, on, p.InstallNetworking, p.UninstallNetworking)
	install := s.Run
	s.Run = func(c *C) (None, error) {
		if _, err := install(c); err != nil {
			return None{}, err
		}
		return None{}, of(c).WaitAvailable()
	}
	return s
}

// UpgradeStep returns the step that upgrades the cluster that of returns. If pre-upgrade found
// nothing to upgrade, the step only waits until the cluster that unmoved returns is settled. It
// differs, because the cluster was then not moved to a bootstrap cluster.
func UpgradeStep[C any](name hook.Task[C, C], d *Deps, p Upgrader, of, unmoved func(*C) Target) Step[C, C, None] {
	s := Do(name, upgradeTimeout,
		func(c *C) error { return of(c).Upgrade(p, d.Apply) },
		func(c *C) error { return of(c).UndoUpgrade() })
	s.PointOfNoReturn = true
	return IfNeeded(s, func(c *C, reason string) (None, error) {
		return None{Skipped: reason}, unmoved(c).WaitUnchanged(p)
	})
}

// ConfigStep returns the step that writes the configuration of an upgraded cluster.
func ConfigStep[C any](name hook.Task[C, C], d *Deps, of func(*C) Target) Step[C, C, None] {
	return Do(name, CheckTimeout,
		func(c *C) error { return d.WriteConfig(of(c)) },
		func(c *C) error { return d.RestoreConfig(of(c).Context) })
}
