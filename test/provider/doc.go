// Package provider has two small providers for the tests of pauses. The out-of-band reconciler of
// the first takes time to stop before it acknowledges, as Azure Service Operator does below Cluster
// API's provider for Azure. The second never acknowledges.
package provider
