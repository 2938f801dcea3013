// Package prepare makes a run ready: it knows which kinds of tasks a process offers, reads what a manifest refers to,
// expands named workflows and manifests into tasks, and builds the definition. scutectl and the daemon both start here.
//
// What never may live here: what a task does, and a decision about a run.
package prepare
