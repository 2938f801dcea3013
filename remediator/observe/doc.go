// Package observe reads an owner's facts from a cache, and from each etcd member directly.
//
// Observe sends no request while all machines are healthy: it reads a cache that is kept current by
// watches. The cache stores only the parts of each object that facts need. Probe runs when a
// machine is unhealthy or a remediation is in progress: it opens connections to the workload
// cluster, and closes them before it returns. A value that could not be read is Unknown, with the
// reason: never a guess, never an error.
//
// A member of etcd is reached through its node. If that fails, it is reached on its client port or
// through the node of a peer (way.go), because the member may be alive although the kubelet is
// dead.
//
// This package never contains writes to Kubernetes (package remediator/act), decisions (package
// remediator), a cached Secret or Node, or the content of a Secret in an error. MoveLeader,
// Defragment and Disarm change etcd. They are here because the connections to workload clusters are
// here; package act calls them.
package observe
