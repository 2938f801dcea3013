// Package workload creates, upgrades and deletes a workload cluster of a management cluster. The
// tasks are in tasks.go, in the order of their workflow; create.go, upgrade.go and delete.go put
// them together, and nothing else decides what runs.
//
//	made, problems := workload.NewCreate(deps, provider, cluster, management)
//
// A task is as large as what has to be done again when it fails; it belongs here if without it there is no workload cluster
// that works. All else is a hook.
//
// What never may live here: what only one provider needs, and bootstrap clusters.
package workload
