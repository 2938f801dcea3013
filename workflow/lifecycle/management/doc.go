// Package management constructs the workflows that create, upgrade and delete a management cluster, which manages itself. A bootstrap cluster manages
// it until then, and again during its deletion. tasks.go defines the tasks in the order of their workflows; create.go, upgrade.go and delete.go put
// them together, and nothing else decides which tasks run.
//
//	made, problems := management.NewCreate(deps, provider, cluster)
//
// A task is the unit that is repeated after a failure: an attempt may crash at any point, and the next attempt continues. A task belongs here if a
// management cluster does not work without it. Everything else is a hook.
//
// This package never contains code for a single provider.
package management
