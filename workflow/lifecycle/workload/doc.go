// Package workload constructs the workflows that create, upgrade and delete a workload cluster, which a management cluster manages. tasks.go defines
// the tasks in the order of their workflows; create.go, upgrade.go and delete.go put them together, and nothing else decides which tasks run.
//
//	made, problems := workload.NewCreate(deps, provider, cluster, management)
//
// A task is the unit that is repeated after a failure. A task belongs here if a workload cluster does not work without it. Everything else is a hook.
//
// This package never contains code for a single provider, or for bootstrap clusters.
package workload
