// Package act writes what the remediator decided: annotations of machines, replicas of the owner,
// rollout triggers, the conditions on which an owner remediates a machine, and the objects of
// escalation steps.
//
// Every action reads live, writes only what is missing, and only to the version that it read.
// Repeating an action changes nothing, and after a crash the next attempt completes it. A write
// that starts or advances a replacement requires that the Machine, its owner and its Cluster, all
// read again, permit it.
//
// This package never contains decisions (package remediator), the event log (package
// remediator/runner), a way to delete a Machine (only its owner may), or the content of Secrets.
package act
