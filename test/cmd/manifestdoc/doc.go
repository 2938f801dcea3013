// Command manifestdoc writes docs/manifest.md: the reference of the WorkflowRun manifest, made of the Go types that read it
// and of their comments.
package main
