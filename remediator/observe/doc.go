// Package observe reads an owner's facts from a cache, and from each etcd member directly.
//
// Observe sends no request while all machines are healthy: it reads a cache that watches keep
// current and that stores only what facts need. Probe runs when a machine is unhealthy or a
// remediation is in progress, and connects to the workload cluster. A value that could not be read
// is Unknown, with the reason: never a guess, never an error.
//
// A member of etcd is reached through its node. If that fails, it is reached on its client port or
// through the node of a peer (way.go), because it may be alive although the kubelet is dead.
//
// This package never contains writes to Kubernetes (package remediator/act), decisions (package
// remediator), a cached Secret or Node, or the content of a Secret in an error. MoveLeader,
// Defragment and Disarm change etcd for package act, because the connections to workload clusters
// are here.
package observe
