// Package manifest makes a definition of the manifest of a run: it reads what the manifest refers to, expands named workflows
// and manifests of objects into tasks, and builds the definition. scutectl and the daemon both start here.
//
// What never may live here: what a task does, and a decision about a run.
package manifest
