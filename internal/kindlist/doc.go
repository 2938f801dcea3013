// Command kindlist writes the list of the kinds of tasks into the comment of the API's field kind, from the registry of
// kinds. `make generate` runs it before it makes the CRDs of that comment.
//
//	go run ./internal/kindlist api/v1alpha1/workflowrun_types.go
package main
