// Package httprequest is the kind of task HTTP: it makes one request and checks the answer.
//
// What never may live here: which addresses may be reached (package web).
package httprequest
