// Package observe is the remediator's look at the world: an owner's facts from a cache of its own, and from etcd, each
// member asked itself.
//
// Look sends no request while nothing is sick: it reads a cache that watches, and that keeps of each object what facts
// need and no more. Ask is for when something is sick, or under way: it opens connections to the workload cluster, and
// closes them all before it returns. What could not be had is Unknown, with the reason: never a guess, never an error.
//
// A member of etcd is asked through its node; where that fails, on its client port, and through the node of a peer (way.go):
// a dead kubelet is no dead member.
//
// What never may live here: writes to Kubernetes (package remediator/act), decisions (package remediator), a cached Secret
// or Node, and the content of a Secret in an error. MoveLeader and SetOutOfService are the calls that change something:
// they are here because the connections to workload clusters are, and act asks for them.
package observe
