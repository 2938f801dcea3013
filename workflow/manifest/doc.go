// Package manifest builds the definition of a run from its manifest. It reads the objects and files
// that the manifest refers to, and expands named workflows and Apply tasks.
//
// This package never does the work of a task, and never decides about a run.
package manifest
