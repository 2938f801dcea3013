// Package management creates, upgrades and deletes a management cluster that manages itself. Before
// and after that, a bootstrap cluster manages it. The tasks are in tasks.go, in the order of their
// workflow; create.go, upgrade.go and delete.go put them together, and nothing else decides what
// runs.
//
//	made, problems := management.NewCreate(deps, provider, cluster)
//
// A task is as large as what has to be done again when it fails: its attempt may die at any point, and the next one finds
// what is half done. A task belongs here if without it there is no management cluster that works; all else is a hook.
//
// What never may live here: what only one provider needs.
package management
