//go:build !taste

package tasks

import (
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/providers"
)

// ofClusterctl returns the kinds that import clusterctl's library, a quarter of scutectl's build
// time. The build tag taste omits them.
func ofClusterctl() []Registration {
	return []Registration{{
		Name: "Providers", Inputs: providers.With{}, Description: "installs and upgrades Cluster API providers",
		Inverse: "removes what it installed; none for an upgrade",
		New:     func(o Options) task.Kind { return &providers.Kind{Clusters: o.Clusters} },
	}}
}
