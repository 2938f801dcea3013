// Package assets builds scute's programs and the servers of the test bed. They are written to
// bin/test of the checkout.
//
// It also finds the Go modules whose manifests the test bed installs. It never starts a process other than the go
// command, and knows nothing about clusters.
package assets
