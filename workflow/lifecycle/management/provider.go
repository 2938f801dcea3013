package management

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// CreateProvider is what Create asks of a provider.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
	Configurer
}

// UpgradeProvider is what Upgrade asks of a provider.
type UpgradeProvider interface {
	provider.ComponentInstaller
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider is what Delete asks of a provider; see also provider.Cleaner.
type DeleteProvider interface {
	provider.ComponentInstaller
}

// Configurer installs the configuration that the user supplied, on the cluster that manages itself by then. The rules of
// package provider hold for it.
type Configurer interface {
	InstallConfiguration(c *sequence.Context, on access.ClusterRef) error
	UninstallConfiguration(c *sequence.Context, on access.ClusterRef) error
}
