// Package connect connects scutectl to what it reads: the management cluster, as kubectl does, and the event log, be it in a
// folder, on a NATS server, or inside the daemon's pod, behind a port-forward.
//
// Everything here has a deadline, and every failure says what to do about it. What never may live here: what is read.
package connect
