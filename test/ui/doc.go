// Package ui tests the pages of scutectl ui in a real Chromium. They are of logs of real local runs
// and of real clusters. The pages must have no error and no barrier, follow a log without loading
// again, and show the content of a log as text.
package ui
