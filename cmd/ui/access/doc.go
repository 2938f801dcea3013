// Package access asks a management cluster who has a bearer token, and what of the log that user may read: who may list scute's resource
// of a kind in a namespace may read what the log has about it. An answer is kept for a minute at most.
//
// What never may live here: HTTP, sessions, and pages.
package access
