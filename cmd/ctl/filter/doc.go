// Package filter selects events of the log by object, actor, type and time. Commands that read the log share its options. It reads nothing itself.
package filter
