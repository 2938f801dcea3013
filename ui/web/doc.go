// Package web serves the pages over HTTP: to one person on one machine, who has the token of its address.
//
// What never may live here: what is on a page.
package web
