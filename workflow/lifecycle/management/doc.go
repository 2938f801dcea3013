// Package management creates, upgrades and deletes a management cluster that manages itself. Before
// and after that, a bootstrap cluster manages it. The tasks are in tasks.go, in the order of their
// workflows. Only workflows.go decides what runs.
//
//	made, problems := management.NewCreate(deps, provider, cluster)
//
// A task is the unit that is repeated after a failure: an attempt may crash at any point, and the
// next attempt continues. A task belongs here if a management cluster does not work without it.
// Everything else is a hook.
//
// This package never contains code for a single provider.
package management
