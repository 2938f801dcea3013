// Package logaccess keeps the tokens of the listener of an embedded event log in Secrets, one for each role, so that the RBAC of
// Kubernetes decides who may read the log and who may append to it.
//
// What never may live here: what a role may do with the log, which is in package eventlog/embedded.
package logaccess
