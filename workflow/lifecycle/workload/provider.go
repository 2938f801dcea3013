package workload

import "scute.dev/workflow/lifecycle/provider"

// CreateProvider is the provider interface of the create workflow. It installs its components on the workload cluster.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
}

// UpgradeProvider is the provider interface of the upgrade workflow.
type UpgradeProvider interface {
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider is the provider interface of the delete workflow: it has no methods. A provider may implement provider.Cleaner.
type DeleteProvider any
