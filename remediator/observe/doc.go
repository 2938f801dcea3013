// Package observe reads an owner's facts from a cache, and from each etcd member directly.
//
// Look sends no request while all machines are healthy: it reads a cache that watches, and that stores of each object
// only what facts need. Ask is used when a machine is unhealthy, or a remediation is in progress: it opens connections
// to the workload cluster, and closes them all before it returns. What could not be read is Unknown, with the reason:
// never a guess, never an error.
//
// A member of etcd is asked through its node; where that fails, on its client port, and through the node of a peer (way.go):
// a dead kubelet is no dead member.
//
// What never may live here: writes to Kubernetes (package remediator/act), decisions (package remediator), a cached Secret
// or Node, and the content of a Secret in an error. MoveLeader, Defragment and Disarm are the calls that change
// something: they are here because the connections to workload clusters are, and act asks for them.
package observe
