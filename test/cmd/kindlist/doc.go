// Command kindlist writes the list of task kinds into the API's comment and docs/kinds.md. The source is the registry
// of kinds. `make generate` runs it before it generates the CRDs from that comment.
package main
