// Package lifecycle constructs the six named workflows. They are management-create,
// management-upgrade, management-delete, workload-create, workload-upgrade and workload-delete. It
// decodes and checks their parameters, reports all problems at once, and selects the provider.
// Packages management and workload construct the tasks.
//
// This package never does the work of a task.
package lifecycle
