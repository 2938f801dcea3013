// Package eventlog stores decisions in an append-only log on NATS JetStream.
//
// One aggregate is one subject; one decision is one commit; one commit is one JetStream message, written with the
// expected sequence of its subject. An append ends as stored, already stored, conflict, unavailable or full, never
// as "maybe". The log is embedded in the process (file store, every acknowledgement synced to disk) or an external
// NATS; both run the same code.
//
// What never may live here: anything of Kubernetes, any domain's events or decisions, any view of the log.
package eventlog
