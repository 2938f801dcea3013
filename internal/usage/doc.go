// Package usage counts what each namespace appended to the log within the last hour. So one tenant
// cannot fill the log.
//
// This package never acts on the counts.
package usage
