package workload

import (
	"time"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are the dependencies of the workflows.
type Deps struct {
	Clusters *access.Clusters
	// Apply is the kind that applies objects.
	Apply task.Kind
	// Folder is the folder for the kubeconfigs of a local run.
	Folder string
	// Pause are the inputs of a Pause task, which pauses other controllers during an upgrade; nil for none.
	Pause []byte
	// Config writes the configuration of an upgraded cluster.
	Config provider.ConfigWriter
	// Registrars bind hooks.
	Registrars []HookRegistrar
}

// The timeouts of an attempt if neither the manifest nor the run's deadline sets one.
const (
	checkTimeout      = 10 * time.Minute
	componentsTimeout = 30 * time.Minute
	networkTimeout    = 30 * time.Minute
	clusterTimeout    = time.Hour
	upgradeTimeout    = 4 * time.Hour
)
