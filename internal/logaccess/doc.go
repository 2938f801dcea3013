// Package logaccess stores the tokens for an embedded event log in Secrets, one for each role. So
// RBAC decides who may read the log and who may append to it.
//
// What never may live here: what a role may do with the log, which is in package eventlog/embedded.
package logaccess
