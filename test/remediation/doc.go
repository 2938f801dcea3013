// Package remediation replaces unhealthy machines of real clusters, with the real owners: one management cluster that all tests
// share, a workload cluster and a namespace for each. How many etcd members answered meanwhile is in the test's output.
package remediation
