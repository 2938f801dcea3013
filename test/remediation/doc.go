// Package remediation tests replacements of unhealthy machines with the real owners. All tests
// share one management cluster, and each has its own workload cluster and namespace. How many etcd
// members answered meanwhile is in the test's output.
package remediation
