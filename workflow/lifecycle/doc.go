// Package lifecycle has the six workflows that scute brings along, by name: management-create, management-upgrade,
// management-delete, workload-create, workload-upgrade and workload-delete. It reads and checks their parameters, all
// problems at once, chooses the provider, and has packages management and workload construct the tasks.
//
// What never may live here: what a task does.
package lifecycle
