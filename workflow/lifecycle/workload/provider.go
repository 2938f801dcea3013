package workload

import "scute.dev/workflow/lifecycle/provider"

// CreateProvider is what Create asks of a provider. Its components are those on the workload cluster.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
}

// UpgradeProvider is what Upgrade asks of a provider.
type UpgradeProvider interface {
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider is what Delete asks of a provider: nothing. See provider.Cleaner for what it may offer.
type DeleteProvider any
