// Package apply is the kind of task Apply: it makes objects be as manifests say, waits until they are settled, and
// restores what it changed.
//
// What never may live here: how a cluster is reached, and when the tasks that a set of objects is expanded to run.
package apply
