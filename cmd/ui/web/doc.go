// Package web serves the pages over HTTP: those of scutectl ui to one person on one machine, who has the token of its address (New), and those
// of the daemon to everybody who has a bearer token of the cluster, each limited to what that user may list (Shared).
//
// What never may live here: what is on a page.
package web
