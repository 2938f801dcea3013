// Command kindlist writes the list of the kinds of tasks into the comment of the API's field kind, and their table into the
// page of the kinds, from the registry of kinds. `make generate` runs it before it makes the CRDs of that comment.
package main
