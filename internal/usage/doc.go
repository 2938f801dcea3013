// Package usage counts what each namespace appended to the log within the last hour. So one tenant
// cannot fill the log.
//
// What never may live here: what is done about it.
package usage
