// Package ownerkind reads and writes each kind of owner of machines. The caches, the observer, the
// executor, the controllers, the daemon and scutectl use All and know no kind by name. The rules
// for a kind are in package remediator (owner_kinds.go).
//
// This package never contains requests to an API server (packages observe and act) or decisions (package remediator).
package ownerkind
