// Package eventlog stores decisions in an append-only log on NATS JetStream.
//
// One aggregate is one subject. One decision is one commit, and one commit is one JetStream message, written
// with the expected sequence of its subject. The log is embedded in the process (file store, every
// acknowledgement synced to disk) or is on an external NATS. Both run the same code.
//
// This package never contains anything of Kubernetes, events or decisions of a domain, or a view of the log.
package eventlog
