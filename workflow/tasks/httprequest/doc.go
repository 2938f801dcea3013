// Package httprequest implements the task kind HTTP, which makes one request and checks the answer.
//
// What never may live here: which addresses may be reached (package web).
package httprequest
