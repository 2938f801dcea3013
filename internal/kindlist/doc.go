// Command kindlist writes the list of the kinds of tasks into the comment of the API's field kind, and their table into the
// page of the kinds, from the registry of kinds. `make generate` runs it before it makes the CRDs of that comment.
//
//	go run ./internal/kindlist api/v1alpha1/workflowrun_types.go docs/kinds.md
package main
