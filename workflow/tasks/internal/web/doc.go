// Package web makes requests of tasks by HTTP: to allowed addresses only, and with errors that repeat no query.
//
// What never may live here: what is asked for.
package web
