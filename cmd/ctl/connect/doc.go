// Package connect connects scutectl to the management cluster and to the event log. The log is in a
// folder, on a NATS server, or inside the daemon's pod behind a port-forward.
//
// Everything here has a deadline, and every failure says what to do about it. What never may live here: what is read.
package connect
