// Package inmemory is a provider of the named workflows for clusters on the in-memory cloud of the test bed, and an example
// of a provider that is not made of manifests alone: it converts the specification from its own template, makes sure
// that the controllers which it needs are at work, and writes the network through the API of the new cluster.
package inmemory
