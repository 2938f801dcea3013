// Package inmemory is a provider of the named workflows for the in-memory cloud. It is also an
// example of a provider with code. It converts the specification with its own template, checks that
// the controllers which it needs work, and writes the network through the API of the new cluster.
package inmemory
