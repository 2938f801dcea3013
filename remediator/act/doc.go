// Package act writes what the remediator decided to machines and their owners. It writes
// annotations of machines, replicas of the owner, rollout triggers, the conditions by which a
// machine is handed over, and the objects of escalation steps.
//
// Every action reads live, writes only what is missing, and writes it only on the version that it has read: performing
// it twice is the same as performing it once, and after a crash at any instant the next performance finishes it. What
// begins or advances a replacement is written only while the Machine, its owner and its Cluster, all read again, allow
// it.
//
// What never may live here: decisions (package remediator), the event log (package remediator/runner), a way to delete a
// Machine (only its owner may), and the content of Secrets.
package act
