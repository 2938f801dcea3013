// Package ownerkind reads and writes each kind of owner of machines. The caches, the observer, the
// executor, the controllers, the daemon and scutectl go through All and know no kind by name. What
// the rules know of a kind is in package remediator (owner_kinds.go).
//
// What never may live here: requests to an API server (packages observe and act), and decisions (package remediator).
package ownerkind
