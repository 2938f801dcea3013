// Package ownerkind knows the kinds of owners that the remediator asks for replacements: a file for each, which reads its facts and
// writes what is asked of it. The caches, the observer, the executor, the controllers, the daemon and scutectl go through All and know
// no kind by name. What the rules know of a kind is in package remediator (owner_kinds.go).
//
// What never may live here: requests to an API server (packages observe and act), and decisions (package remediator).
package ownerkind
