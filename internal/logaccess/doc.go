// Package logaccess stores the tokens of an embedded event log in Secrets, one for each role. So
// RBAC decides who may read the log and who may append to it.
//
// This package never contains what a role may do with the log (package eventlog/embedded does).
package logaccess
