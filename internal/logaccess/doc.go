// Package logaccess keeps the tokens for the listener of an embedded event log in Secrets, one per role, so that Kubernetes RBAC decides who may read
// the log and who may append to it.
//
// This package never contains what a role may do with the log (package eventlog/embedded does).
package logaccess
