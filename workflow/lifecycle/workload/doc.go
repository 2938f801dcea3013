// Package workload creates, upgrades and deletes a workload cluster of a management cluster. The
// tasks are in tasks.go, in the order of their workflows. Only workflows.go decides what runs.
//
//	made, problems := workload.NewCreate(deps, provider, cluster, management)
//
// A task is the unit that is repeated after a failure. A task belongs here if a workload cluster
// does not work without it. Everything else is a hook.
//
// This package never contains code for a single provider, or for bootstrap clusters.
package workload
