package workload

import (
	"time"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Deps are what the workflows work with.
type Deps struct {
	Clusters *access.Clusters
	// Apply is the kind that does the work.
	Apply task.Kind
	// Folder is where a local run keeps kubeconfigs.
	Folder string
	// Pause are the inputs of a Pause of other controllers for the time of an upgrade; nil for none.
	Pause []byte
	// Config writes the configuration of an upgraded cluster.
	Config provider.ConfigWriter
	// Registrars bind hooks.
	Registrars []HookRegistrar
}

// What an attempt takes at most where neither the manifest nor the run's deadline says it.
const (
	withinLook       = 10 * time.Minute
	withinComponents = 30 * time.Minute
	withinNetwork    = 30 * time.Minute
	withinCluster    = time.Hour
	withinUpgrade    = 4 * time.Hour
)
