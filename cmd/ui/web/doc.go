// Package web serves the pages over HTTP to one local user who has the token.
//
// What never may live here: what is on a page.
package web
