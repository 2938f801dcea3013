// Package web sends HTTP requests of tasks to allowed addresses. Its errors repeat no query.
//
// This package never contains the content of requests.
package web
