// Package management has the workflows that create, upgrade and delete a management cluster: one that manages itself. While
// that is not so yet, or no more, a bootstrap cluster does it. The tasks stand in tasks.go with what each may do, in the
// order of their workflow; create.go, upgrade.go and delete.go put them together, and nothing else decides what runs.
//
//	made, problems := management.NewCreate(deps, provider, cluster)
//
// A task is as large as what has to be done again when it fails: its attempt may die at any point, and the next one finds
// what is half done. A task belongs here if without it there is no management cluster that works; all else is a hook.
//
// What never may live here: what only one provider needs.
package management
