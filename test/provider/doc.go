// Package provider has two small providers for the tests of pauses, with real controllers and their own, separate kinds: one whose
// out-of-band reconciler takes its time to stop before it acknowledges, as Azure Service Operator does below Cluster API's provider
// for Azure, and one that never acknowledges.
package provider
