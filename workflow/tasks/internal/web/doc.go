// Package web makes HTTP requests for tasks, only to allowed addresses, and with errors that do not contain the query.
//
// This package never contains the content of requests.
package web
