// Package web sends HTTP requests of tasks to allowed addresses. Its errors repeat no query.
//
// What never may live here: what is asked for.
package web
