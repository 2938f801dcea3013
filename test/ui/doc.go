// Package ui tests the pages of scutectl ui in a real Chromium, on the logs of real local runs and of real clusters: that they have no error and no barrier,
// that they follow a log without loading again, and that what a log says stays text.
package ui
