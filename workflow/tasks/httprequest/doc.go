// Package httprequest implements the task kind HTTP, which makes one request and checks the answer.
//
// This package never contains which addresses may be reached (package task/access).
package httprequest
