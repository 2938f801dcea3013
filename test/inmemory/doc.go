// Package inmemory is a provider of the named workflows for the in-memory cloud. It is also an example of a provider
// with code. It renders its own template from the specification, checks that the controllers that it needs work, and
// writes the network through the API of the new cluster.
package inmemory
