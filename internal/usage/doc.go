// Package usage counts what each namespace appended to the log within the last hour, so that one tenant cannot fill it.
//
// What never may live here: what is done about it.
package usage
