// Package filter selects events of the log: by what they are about, who decided, their type, and their time. Commands that read the
// log share its options. It reads nothing itself.
package filter
