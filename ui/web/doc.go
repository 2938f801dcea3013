// Package web serves the pages over HTTP to one local user who has the token.
//
// This package never contains the content of a page.
package web
