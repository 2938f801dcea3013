// Package ui tests the pages of scutectl ui in a real Chromium. They show logs of real local runs and of real clusters.
// The pages must have no error and no accessibility barrier, follow a log without a reload, and show the content of a
// log as text.
package ui
