// Command manifestdoc writes docs/manifest.md from the Go types and their comments.
package main
