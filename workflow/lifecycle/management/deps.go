package management

import (
	"time"

	"scute.dev/workflow/lifecycle/bootstrap"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	Clusters *access.Clusters
	// Apply and Move are the kinds that apply and move objects.
	Apply, Move task.Kind
	Bootstrap   bootstrap.Cluster
	// InPlace means that the management cluster upgrades itself, without a bootstrap cluster.
	InPlace bool
	// Folder is the folder for the kubeconfigs of a local run.
	Folder string
	// Pause are the inputs of a Pause task, which pauses other controllers on the management cluster during an upgrade; nil for none.
	Pause []byte
	// Config writes the configuration of an upgraded cluster.
	Config provider.ConfigWriter
	// Registrars bind hooks.
	Registrars []HookRegistrar
}

// The timeouts of an attempt if neither the manifest nor the run's deadline sets one.
const (
	checkTimeout      = 10 * time.Minute
	bootstrapTimeout  = 20 * time.Minute
	componentsTimeout = 30 * time.Minute
	networkTimeout    = 30 * time.Minute
	clusterTimeout    = time.Hour
	upgradeTimeout    = 4 * time.Hour
	pivotTimeout      = time.Hour
)
